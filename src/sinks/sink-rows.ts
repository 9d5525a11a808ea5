import type { ClientBase } from 'pg';
import { COLUMN_NAMES, COLUMNS } from '../request-log/columns.js';
import type { Place } from './sink.entity.js';

/** Rows of one batch at most. */
export const MOST_ROWS = 20_000;
/** Bytes of one batch, about: rows have 1 kB, but may have 100. */
const MOST_BYTES = 32 * 1_024 * 1_024;

/** Comes before and after every ID. */
export const FIRST_ID = '00000000-0000-0000-0000-000000000000';
export const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** How large a message may be. */
export interface MessageSize {
  rows: number;
  bytes: number;
}

/** Consecutive rows. */
export interface RowGroup {
  rows: number;
  /** One JSON object a line, without a line feed at the end. */
  body: string;
  /** The last row. */
  end: Place;
}

/** Times as the admin API and the exports write them, and numerics as text. */
const LIST = COLUMN_NAMES.map((name) => {
  const { type } = COLUMNS[name];
  if (type === 'timestamptz')
    return `to_char(${name} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS ${name}`;
  return type === 'numeric' ? `${name}::text` : name;
}).join(', ');

/**
 * The rows after a place and up to another one, in groups. Postgres formats them, and returns one text for each group:
 * the process that forwards calls only copies bytes. The plain comparisons are for the index.
 */
const READ = `
  WITH log AS (
    SELECT recorded_at AS at, id AS row_id, (SELECT row_to_json(one)::text FROM (SELECT ${LIST}) AS one) AS line
    FROM request_log
    WHERE recorded_at >= $1 AND recorded_at <= $3 AND (recorded_at, id) > ($1, $2) AND (recorded_at, id) <= ($3, $4)
    ORDER BY recorded_at, id LIMIT $5
  ), numbered AS (
    SELECT *, row_number() OVER places - 1 AS n, sum(octet_length(line) + 1) OVER places AS bytes
    FROM log WINDOW places AS (ORDER BY at, row_id)
  )
  SELECT count(*)::int AS rows, string_agg(line, E'\\n' ORDER BY n) AS body,
         max(at) AS "recordedAt", (array_agg(row_id ORDER BY n DESC))[1] AS id
  FROM numbered WHERE n = 0 OR bytes <= ${MOST_BYTES}
  GROUP BY n / $6, (bytes / $7)::bigint ORDER BY min(n)`;

/** Reads rows after a place, up to another one, at most MOST_ROWS of them. A group stays below the size. */
export async function readGroups(
  client: Pick<ClientBase, 'query'>,
  after: Place,
  until: Place,
  { rows: most, bytes }: MessageSize,
): Promise<RowGroup[]> {
  const values = [after.recordedAt, after.id, until.recordedAt, until.id, MOST_ROWS, most, bytes];
  const { rows } = await client.query<{ rows: number; body: string; recordedAt: Date; id: string }>(
    READ,
    values,
  );
  return rows.map(({ rows: count, body, recordedAt, id }) => ({
    rows: count,
    body,
    end: { recordedAt, id },
  }));
}
