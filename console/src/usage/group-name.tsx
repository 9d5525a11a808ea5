import { FullName } from '../display/full-name';
import { type Dimension, groupLabel, type UsageRow } from './metrics';

/** The name of a row's group, in one line; of a key, what does not fit is cut from its team. */
export function GroupName({ row, dimension }: { row: UsageRow; dimension: Dimension }) {
  if (dimension === 'key' && row.key !== null && row.key !== undefined)
    return <FullName team={row.team ?? '?'} name={row.key} />;
  return <>{groupLabel(row, dimension)}</>;
}
