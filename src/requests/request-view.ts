import { COLUMN_NAMES, COLUMNS, type StoredRow } from '../request-log/columns.js';
import type { RequestLog } from '../request-log/request-log.entity.js';

type ColumnName = keyof StoredRow;

/** A row of the request log as JSON has it, with the present names of its team and key. */
export type RequestView = {
  [Name in ColumnName]: StoredRow[Name] extends Date
    ? string
    : (typeof COLUMNS)[Name]['type'] extends 'jsonb'
      ? Record<string, number | string> | null
      : StoredRow[Name];
} & { [Name in ShownName]: string | null };

/** Names that are looked up when a row is read, by the column that they come after. */
const NAMES = { team_id: 'team', key_id: 'key' } as const;
type ShownName = (typeof NAMES)[keyof typeof NAMES];

/** Subqueries, not joins: conditions name columns of the log only, and each row looks up two primary keys. */
const NAME_SQL: Record<ShownName, string> = {
  team: '(SELECT name FROM team WHERE team.id = request_log.team_id) AS team',
  key: '(SELECT name FROM gateway_key WHERE gateway_key.id = request_log.key_id) AS key',
};

/** All columns, the id first. `openapi.json` pins them: nobody publishes a new column without noticing. */
export const SHOWN_COLUMNS: readonly (ColumnName | ShownName)[] = (
  ['id', ...COLUMN_NAMES.filter((name) => name !== 'id')] as ColumnName[]
).flatMap((name) => (name in NAMES ? [name, NAMES[name as keyof typeof NAMES]] : [name]));

/** True for a name that is looked up, false for a column of the table. */
export function isShownName(name: ColumnName | ShownName): name is ShownName {
  return name in NAME_SQL;
}

/**
 * A SELECT list of all shown columns.
 *
 * @param column formats a column of the table
 */
export function selectList(column: (name: ColumnName) => string = (name) => name): string {
  return SHOWN_COLUMNS.map((name) => (isShownName(name) ? NAME_SQL[name] : column(name))).join(', ');
}

export const SELECT_REQUESTS = `SELECT ${selectList()} FROM request_log`;

/** The columns of one SQL type. */
export function columnsOfType(type: (typeof COLUMNS)[ColumnName]['type']): readonly ColumnName[] {
  return COLUMN_NAMES.filter((name) => COLUMNS[name].type === type);
}

const TIMES = columnsOfType('timestamptz');
const BIGINTS = columnsOfType('bigint');
const LISTS = columnsOfType('bigint[]');

/** A row that SELECT_REQUESTS reads. */
export type RequestRow = RequestLog & { [Name in ShownName]: string | null };

/** Byte counts are far below 2^53, so they are shown as numbers. */
export function requestView(row: RequestRow): RequestView {
  const view: Record<string, unknown> = { ...row };
  for (const name of TIMES) view[name] = (view[name] as Date | null)?.toISOString() ?? null;
  for (const name of BIGINTS) view[name] = view[name] === null ? null : Number(view[name]);
  for (const name of LISTS) if (view[name] !== null) view[name] = `{${(view[name] as string[]).join(',')}}`;
  return view as RequestView;
}
