import type { ClientBase } from 'pg';
import { FIRST_ID, LAST_ID, type Place } from '../request-log/log-cursor.js';
import type { SinkKind } from './sink.entity.js';

type Client = Pick<ClientBase, 'query'>;

/** A batch as it is stored before it is sent. */
export interface Batch {
  token: string;
  /** The last row of each message. */
  ends: readonly Place[];
}

/** A sink as its leader reads it. */
export interface SinkProgress {
  id: string;
  name: string;
  kind: SinkKind;
  target: string | null;
  sealed: Buffer;
  version: number;
  cursor: Place;
  batch: Batch | null;
}

interface Row {
  id: string;
  name: string;
  kind: SinkKind;
  target: string | null;
  sealed: Buffer;
  version: number;
  recorded_until: Date;
  recorded_until_id: string;
  batch_token: string | null;
  batch_ends: [string, string][] | null;
}

const READ = `
  SELECT id, name, kind, target, sealed, version, recorded_until, recorded_until_id, batch_token, batch_ends
  FROM sink WHERE id = $1 AND enabled`;
/** Only from the place at which the rows were read: the sink may have been sent back to an earlier one meanwhile. */
const AT_CURSOR =
  'id = $1 AND enabled AND batch_token IS NULL AND (recorded_until, recorded_until_id) = ($2, $3)';
const SKIP = `
  UPDATE sink SET recorded_until = $4, recorded_until_id = '${LAST_ID}', failing_since = NULL WHERE ${AT_CURSOR}`;
const BEGIN = `
  UPDATE sink SET batch_token = $4, batch_until = $5, batch_until_id = $6, batch_ends = $7, batch_at = clock_timestamp()
  WHERE ${AT_CURSOR}`;
/** By the token: a leader that has lost its lock, or whose sink was sent back, moves nothing. */
const END = `
  UPDATE sink SET recorded_until = batch_until, recorded_until_id = batch_until_id, rows_sent = rows_sent + $2,
    sent_at = clock_timestamp(), failing_since = NULL,
    batch_token = NULL, batch_until = NULL, batch_until_id = NULL, batch_ends = NULL, batch_at = NULL
  WHERE batch_token = $1`;
const FAILED = `
  UPDATE sink SET failing_since = COALESCE(failing_since, clock_timestamp()), last_error = $2, last_error_at = clock_timestamp()
  WHERE id = $1`;

/** @returns null if the sink was removed or paused */
export async function readProgress(client: Client, id: string): Promise<SinkProgress | null> {
  const { rows } = await client.query<Row>(READ, [id]);
  if (rows[0] === undefined) return null;
  const { recorded_until, recorded_until_id, batch_token: token, batch_ends: ends, ...sink } = rows[0];
  return {
    ...sink,
    cursor: { recordedAt: recorded_until, id: recorded_until_id },
    batch:
      token === null
        ? null
        : { token, ends: ends!.map(([at, row]) => ({ recordedAt: new Date(at), id: row })) },
  };
}

/** Moves the cursor over a time without rows. */
export async function skipTo(client: Client, { id, cursor }: SinkProgress, until: Date): Promise<void> {
  await client.query(SKIP, [id, cursor.recordedAt, cursor.id, until]);
}

/** Stores a batch before it is sent. @returns false if the sink was changed meanwhile */
export async function beginBatch(
  client: Client,
  { id, cursor }: SinkProgress,
  { token, ends }: Batch,
): Promise<boolean> {
  const last = ends.at(-1)!;
  const stored = JSON.stringify(ends.map(({ recordedAt, id: row }) => [recordedAt, row]));
  const values = [id, cursor.recordedAt, cursor.id, token, last.recordedAt, last.id, stored];
  return (await client.query(BEGIN, values)).rowCount === 1;
}

/** Moves the cursor to the end of a batch that the sink has. */
export async function endBatch(client: Client, { token }: Batch, rows: number): Promise<boolean> {
  return (await client.query(END, [token, rows])).rowCount === 1;
}

export async function storeFailure(client: Client, id: string, error: string): Promise<void> {
  await client.query(FAILED, [id, error]);
}

/** The place before every row that was recorded at this time or later. */
export function before(time: Date): Place {
  return { recordedAt: time, id: FIRST_ID };
}

const LATEST = 'SELECT max(GREATEST(recorded_until, batch_until)) AS at FROM sink';

/** The time up to which a sink has rows; null: there is none. */
export async function latestSent(client: Pick<ClientBase, 'query'>): Promise<Date | null> {
  return (await client.query<{ at: Date | null }>(LATEST)).rows[0]!.at;
}
