import { Combobox, Text } from '@mantine/core';
import { FullName } from '../display/full-name';
import { ExactTime } from '../figures/figure';
import classes from './search-box.module.css';
import type { Found } from './use-find';

const GROUPS: Record<Found['kind'], string> = {
  request: 'Requests',
  team: 'Teams',
  key: 'Keys',
  model: 'Models',
  end_user: 'End users',
  session: 'Sessions',
};

/** What was found, by kind, as options of a combobox. */
export function Matches({ found, idOf }: { found: readonly Found[]; idOf: (found: Found) => string }) {
  const kinds = (Object.keys(GROUPS) as Found['kind'][]).filter((kind) =>
    found.some((one) => one.kind === kind),
  );
  return kinds.map((kind) => (
    <Combobox.Group key={kind} label={GROUPS[kind]}>
      {found
        .filter((one) => one.kind === kind)
        .map((one) => (
          <Combobox.Option key={idOf(one)} value={idOf(one)}>
            {one.kind === 'key' ? (
              <FullName team={one.team ?? '?'} name={one.name} />
            ) : (
              <Text size="sm" truncate="end" title={one.name}>
                {one.name}
              </Text>
            )}
            {one.at !== null && (
              <Text size="xs" component="span" display="block" className={classes.detail}>
                {one.kind === 'request' ? one.team : 'last seen'} <ExactTime at={one.at} />
              </Text>
            )}
          </Combobox.Option>
        ))}
    </Combobox.Group>
  ));
}
