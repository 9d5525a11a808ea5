import type { ClientBase } from 'pg';
import { COLUMN_NAMES, COLUMNS, type LogRow, type StoredRow } from '../request-log/columns.js';
import { IN_RANGE, type Place } from '../request-log/log-cursor.js';

/**
 * A row as `FinishedCalls` has it, and when it was recorded and last updated. Times are in ISO 8601 (UTC), numerics and
 * jsonb are text.
 */
export type ConsumedRow = LogRow & {
  [Name in Exclude<keyof StoredRow, keyof LogRow>]: null extends StoredRow[Name] ? string | null : string;
};

/** Rows of one transaction at most. */
export const MAX_ROWS = 1_000;
/** Bytes of their text, about: rows have 1 kB, but may have 100. */
const MAX_BYTES = 8 * 1_024 * 1_024;

function readAs(name: keyof StoredRow): string {
  const { type } = COLUMNS[name];
  if (type === 'timestamptz')
    return `to_char(${name} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS ${name}`;
  if (type === 'numeric' || type === 'jsonb' || type === 'bigint[]') return `${name}::text AS ${name}`;
  // Byte counts are far below 2^53.
  return type === 'bigint' ? `${name}::float8 AS ${name}` : name;
}

const READ = `
  SELECT ${COLUMN_NAMES.map(readAs).join(', ')}, found AS "foundRows"
  FROM (
    SELECT *, row_number() OVER places AS n, sum(octet_length(log::text)) OVER places AS bytes, count(*) OVER () AS found
    FROM (SELECT * FROM request_log WHERE ${IN_RANGE} ORDER BY recorded_at, id LIMIT ${MAX_ROWS}) AS log
    WINDOW places AS (ORDER BY recorded_at, id)
  ) AS numbered
  WHERE n = 1 OR bytes <= ${MAX_BYTES} ORDER BY n`;

interface Read {
  rows: ConsumedRow[];
  /** True if there may be more rows up to the end. */
  isFull: boolean;
}

/** Reads rows after a place, up to another one, as many as one transaction has. */
export async function readRows(client: Pick<ClientBase, 'query'>, after: Place, until: Place): Promise<Read> {
  const values = [after.recordedAt, after.id, until.recordedAt, until.id];
  const result = await client.query<ConsumedRow & { foundRows: string }>(READ, values);
  const found = Number(result.rows[0]?.foundRows ?? 0);
  const rows = result.rows.map(({ foundRows: _, ...row }) => row);
  return { rows, isFull: found === MAX_ROWS || found > rows.length };
}
