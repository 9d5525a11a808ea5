import type { ClientBase } from 'pg';
import { COLUMN_NAMES, COLUMNS } from '../request-log/columns.js';
import { IN_RANGE, type Place } from '../request-log/log-cursor.js';

/** Rows of one batch at most. */
export const MAX_ROWS = 20_000;
/** Bytes of one batch, about: rows have 1 kB, but may have 100. */
const MAX_BYTES = 32 * 1_024 * 1_024;

/**
 * For the session that reads. The rows of a batch are sorted before they are formatted: with less memory Postgres sorts
 * every row of the time looked at on disk.
 */
export const PREPARE = `SET work_mem = '64MB'`;

/** The form of a sender's messages. */
export interface MessageFormat {
  /** At most. */
  rows: number;
  bytes: number;
  /** What a line is: a JSON object, or a JSON array of the values in the order of COLUMN_NAMES, which has half the size. */
  lines: 'objects' | 'arrays';
}

/** Consecutive rows. */
export interface RowGroup {
  rows: number;
  /** One row a line, without a line feed at the end. */
  body: string;
  /** When the first row was recorded. */
  from: Date;
  /** The last row. */
  end: Place;
}

const isText = (name: (typeof COLUMN_NAMES)[number]) =>
  COLUMNS[name].type === 'numeric' || COLUMNS[name].type === 'bigint[]';

/** Times as the admin API and the exports write them, numerics and lists as text. */
const MEMBERS = COLUMN_NAMES.map((name) => {
  if (COLUMNS[name].type === 'timestamptz')
    return `to_char(${name} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS ${name}`;
  return isText(name) ? `${name}::text` : name;
}).join(', ');
/** Times in ISO 8601, with the offset of the session. */
const ELEMENTS = COLUMN_NAMES.map((name) => (isText(name) ? `${name}::text` : name)).join(', ');
const LINES: Record<MessageFormat['lines'], string> = {
  objects: `(SELECT row_to_json(one)::text FROM (SELECT ${MEMBERS}) AS one)`,
  arrays: `json_build_array(${ELEMENTS})::text`,
};

/**
 * The rows after a place and up to another one, in groups. Postgres formats them, and returns one text for each group:
 * the process that forwards calls only copies bytes.
 */
const READ = ({ lines }: MessageFormat) => `
  WITH log AS (
    SELECT recorded_at AS at, id AS row_id, ${LINES[lines]} AS line
    FROM request_log
    WHERE ${IN_RANGE}
    ORDER BY recorded_at, id LIMIT $5
  ), numbered AS (
    SELECT *, row_number() OVER places - 1 AS n, sum(octet_length(line) + 1) OVER places AS bytes
    FROM log WINDOW places AS (ORDER BY at, row_id)
  )
  SELECT (SELECT count(*)::int FROM log) AS found, count(*)::int AS rows, string_agg(line, E'\\n' ORDER BY n) AS body,
         min(at) AS from, max(at) AS "recordedAt", (array_agg(row_id ORDER BY n DESC))[1] AS id
  FROM numbered WHERE n = 0 OR bytes <= $8
  GROUP BY n / $6, (bytes / $7)::bigint ORDER BY min(n)`;

/** One message, however many rows there are. */
export const WHOLE = { rows: 2 ** 40, bytes: 2 ** 40 } as const;

/** What was read. */
export interface RowGroups {
  groups: RowGroup[];
  /** True if a batch cannot take more rows, of which there may be some up to the end. */
  isFull: boolean;
}

/** Reads rows after a place, up to another one, as many as a batch has, or as a message may have if that is more. */
export async function readGroups(
  client: Pick<ClientBase, 'query'>,
  after: Place,
  until: Place,
  format: MessageFormat,
): Promise<RowGroups> {
  const most = Math.max(MAX_ROWS, format.rows);
  const values = [
    ...[after.recordedAt, after.id, until.recordedAt, until.id],
    ...[most, format.rows, format.bytes, Math.max(MAX_BYTES, format.bytes)],
  ];
  const { rows } = await client.query<Omit<RowGroup, 'end'> & Place & { found: number }>(
    READ(format),
    values,
  );
  const found = rows[0]?.found ?? 0;
  const groups = rows.map(({ found: _, recordedAt, id, ...group }) => ({
    ...group,
    end: { recordedAt, id },
  }));
  return { groups, isFull: found === most || found > rowsOf(groups) };
}

export function rowsOf(groups: readonly RowGroup[]): number {
  return groups.reduce((total, { rows }) => total + rows, 0);
}
