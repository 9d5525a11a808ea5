import { Column, type ColumnOptions, Entity, Index } from 'typeorm';
import { COLUMN_NAMES, COLUMNS, describeColumn, type StoredRow } from './columns.js';

export { OUTCOMES, type Outcome } from './outcome.js';

type Types = { [Name in keyof StoredRow]: (typeof COLUMNS)[Name]['type'] };

/** A row as TypeORM reads it. `pg` returns bigint as text, because a number could lose digits above 2^53, and jsonb parsed. */
type ReadRow = {
  [Name in keyof StoredRow]: Types[Name] extends 'timestamptz'
    ? Date
    : Types[Name] extends 'bigint'
      ? string | null
      : Types[Name] extends 'bigint[]'
        ? string[] | null
        : Types[Name] extends 'jsonb'
          ? Record<string, number | string> | null
          : StoredRow[Name];
};

/** One row per forwarded call. The table is range-partitioned by UTC day on `started_at`. */
@Entity('request_log', {
  comment: 'One row for each forwarded call, partitioned by the UTC day of started_at.',
})
@Index('request_log_key_id_idx', ['key_id', 'started_at'])
@Index('request_log_team_id_idx', ['team_id', 'started_at'])
@Index('request_log_recorded_at_idx', ['recorded_at'], { type: 'brin' })
export class RequestLog extends (Object as unknown as new () => ReadRow) {}

const PRIMARY_KEY = { primary: true, primaryKeyConstraintName: 'request_log_pkey' };
const NUMERIC = { precision: 18, scale: 9 };
const OPTIONS: Partial<Record<string, ColumnOptions>> = {
  started_at: PRIMARY_KEY,
  id: PRIMARY_KEY,
  recorded_at: { default: () => "date_trunc('milliseconds', clock_timestamp())" },
};

for (const name of COLUMN_NAMES) {
  const column = COLUMNS[name];
  const options = {
    ...(column.type === 'bigint[]' ? { type: 'bigint' as const, array: true } : { type: column.type }),
    nullable: 'nullMeans' in column,
    comment: describeColumn(name),
    ...OPTIONS[name],
  };
  if (column.type === 'numeric') Object.assign(options, NUMERIC);
  Column(options)(RequestLog.prototype, name);
}
