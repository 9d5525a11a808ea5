import { Button, Group, NativeSelect, Stack } from '@mantine/core';
import { DatePicker } from '@mantine/dates';
import '@mantine/dates/styles.css';
import { useState } from 'react';
import { civilOf, instantOf, twoDigits } from './calendar';
import type { TimeRange } from './time-range';

/** Two days of a calendar, both included, in the time zone of the page. Loaded when it is opened. */
export default function DayRangePicker({
  range,
  onChoose,
}: {
  range: TimeRange;
  onChoose: (bounds: { from: string; to: string }) => void;
}) {
  const { zone } = range;
  const [days, setDays] = useState<[string | null, string | null]>([
    dayOf(range.from, zone),
    dayOf(new Date(Math.min(range.to.getTime() - 1, Date.now())), zone),
  ]);
  const [first, last] = days;
  const [times, setTimes] = useState({ from: '00:00', to: '24:00' });
  const bounds =
    first === null || last === null
      ? undefined
      : { from: instantAt(first, times.from, zone), to: instantAt(last, times.to, zone) };
  const apply = () => {
    if (bounds === undefined) return;
    onChoose({ from: bounds.from.toISOString(), to: bounds.to.toISOString() });
  };
  return (
    <Stack gap="xs">
      <DatePicker
        type="range"
        size="xs"
        allowSingleDateInRange
        value={days}
        onChange={setDays}
        defaultDate={last ?? undefined}
        maxDate={dayOf(new Date(), zone)}
        ariaLabels={{
          nextMonth: 'Next month',
          previousMonth: 'Previous month',
        }}
      />
      <Group gap="xs" grow>
        <NativeSelect
          size="xs"
          label="From"
          data={HALF_HOURS.slice(0, -1)}
          value={times.from}
          onChange={(event) => setTimes({ ...times, from: event.currentTarget.value })}
        />
        <NativeSelect
          size="xs"
          label="Until"
          data={HALF_HOURS.slice(1)}
          value={times.to}
          onChange={(event) => setTimes({ ...times, to: event.currentTarget.value })}
        />
      </Group>
      <Button size="xs" onClick={apply} disabled={bounds === undefined || bounds.from >= bounds.to}>
        Show these days
      </Button>
    </Stack>
  );
}

function dayOf(instant: Date, zone: string): string {
  const { year, month, day } = civilOf(instant, zone);
  return `${year}-${twoDigits(month)}-${twoDigits(day)}`;
}

/** "00:00" to "24:00": the gateway keeps sums of half hours. */
const HALF_HOURS = Array.from(
  { length: 49 },
  (_, index) => `${twoDigits(Math.floor(index / 2))}:${index % 2 === 0 ? '00' : '30'}`,
);

/** @param time "24:00" is the beginning of the next day */
function instantAt(text: string, time: string, zone: string): Date {
  const [year = 0, month = 1, day = 1] = text.slice(0, 10).split('-').map(Number);
  const [hour = 0, minute = 0] = time.split(':').map(Number);
  return instantOf({ year, month, day, hour, minute }, zone);
}
