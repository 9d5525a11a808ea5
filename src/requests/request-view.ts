import { COLUMN_NAMES, COLUMNS, type StoredRow } from '../request-log/columns.js';
import type { RequestLog } from '../request-log/request-log.entity.js';

type ColumnName = keyof StoredRow;

/** A row of the request log as JSON has it. */
export type RequestView = {
  [Name in ColumnName]: StoredRow[Name] extends Date ? string : StoredRow[Name];
};

/** All columns, the id first. `openapi.json` pins them: nobody publishes a new column without noticing. */
export const SHOWN_COLUMNS: readonly ColumnName[] = ['id', ...COLUMN_NAMES.filter((name) => name !== 'id')];

export const SELECT_REQUESTS = `SELECT ${SHOWN_COLUMNS.join(', ')} FROM request_log`;

/** The columns of one SQL type. */
export function columnsOfType(type: (typeof COLUMNS)[ColumnName]['type']): readonly ColumnName[] {
  return SHOWN_COLUMNS.filter((name) => COLUMNS[name].type === type);
}

const TIMES = columnsOfType('timestamptz');
const BIGINTS = columnsOfType('bigint');

/** Byte counts are far below 2^53, so they are shown as numbers. */
export function requestView(row: RequestLog): RequestView {
  const view: Record<string, unknown> = { ...row };
  for (const name of TIMES) view[name] = (view[name] as Date | null)?.toISOString() ?? null;
  for (const name of BIGINTS) view[name] = view[name] === null ? null : Number(view[name]);
  return view as RequestView;
}
