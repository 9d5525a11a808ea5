import { Button, Divider, Popover, SegmentedControl, Text, UnstyledButton } from '@mantine/core';
import { useState } from 'react';
import { partOf } from '../app/lazy-part';
import { LoadingRows } from '../display/loading';
import { DownIcon } from '../display/icons';
import { shortTime } from '../figures/times';
import { PRESETS, type Preset, type TimeRange } from './time-range';
import classes from './time-range-picker.module.css';
import { useOfferedZones, zoneLabel } from './time-zone';
import { useUrlState } from './url-state';

const DayRangePicker = partOf(
  'day-range-picker',
  () => import('./day-range-picker'),
  () => <LoadingRows rows={6} height={30} />,
);

/** Chooses the one time range of a page and its time zone. Both are said on the button and kept in the URL. */
export function TimeRangePicker({ range, presets }: { range: TimeRange; presets?: readonly Preset[] }) {
  const [opened, setOpened] = useState(false);
  const [, setUrl] = useUrlState();
  const zones = useOfferedZones();
  const choose = (state: { range?: string; from?: string; to?: string }) => {
    setUrl({ range: undefined, from: undefined, to: undefined, ...state });
    setOpened(false);
  };
  const bounds = `${shortTime(range.from, range.zone)} – ${range.isOver ? shortTime(range.to, range.zone) : 'now'}`;
  const shown = range.preset === 'custom' ? bounds : range.label;
  const zone = range.zone.replaceAll('_', ' ');
  return (
    <Popover opened={opened} onChange={setOpened} position="bottom-end" withinPortal trapFocus returnFocus>
      <Popover.Target>
        <Button
          variant="default"
          size="sm"
          onClick={() => setOpened(!opened)}
          rightSection={<DownIcon size={14} />}
          aria-label={`Time range: ${shown} ${zone}, ${bounds}, ${zoneLabel(range.zone)}`}
          title={`${bounds} ${zoneLabel(range.zone)}`}
        >
          {shown}{' '}
          <Text span size="xs" c="dimmed" ml={8}>
            {zone}
          </Text>
        </Button>
      </Popover.Target>
      <Popover.Dropdown p="sm" className={classes.menu}>
        <div className={classes.columns}>
          <div className={classes.presets}>
            {(presets ?? (Object.keys(PRESETS) as Preset[])).map((preset) => (
              <UnstyledButton
                key={preset}
                className={classes.preset}
                data-active={preset === range.preset || undefined}
                aria-pressed={preset === range.preset}
                onClick={() => choose({ range: preset })}
              >
                {PRESETS[preset]}
              </UnstyledButton>
            ))}
          </div>
          {opened && <DayRangePicker range={range} onChoose={({ from, to }) => choose({ from, to })} />}
        </div>
        <Divider my="sm" />
        <SegmentedControl
          size="xs"
          fullWidth
          orientation="vertical"
          aria-label="Time zone"
          value={range.zone}
          onChange={(zone) => setUrl({ tz: zone === zones[0]?.zone ? undefined : zone })}
          data={zones.map(({ zone, label }) => ({ value: zone, label }))}
        />
      </Popover.Dropdown>
    </Popover>
  );
}
