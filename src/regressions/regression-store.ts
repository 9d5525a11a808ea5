import type { ClientBase } from 'pg';
import { v7 as uuidv7 } from 'uuid';
import type { LostRun, RegressionState } from './database-regression.entity.js';
import type { RunRow } from './known-runs.js';
import type { PutBack } from './regression.js';
import { SERVER } from './run-counter.js';

type Client = Pick<ClientBase, 'query'>;

/** Every process asks for it every 2 seconds: prepared, because its plan takes longer than its execution. */
const READ_SERVER = {
  name: 'postern-read-server',
  text: `
    SELECT ${SERVER} AS server, (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now,
      pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS "isReadOnly",
      (SELECT json_build_object('id', id, 'number', number, 'state', state,
          'from', (extract(epoch FROM lost_from) * 1000)::float8, 'gap', gap_seconds, 'runs', runs)
        FROM database_regression WHERE server = pg_postmaster_start_time() ORDER BY number DESC LIMIT 1) AS regression`,
};

/** By the partial index: runs that have ended stay for a week, and there may be thousands. */
const READ_RUNS = {
  name: 'postern-read-runs',
  text: `
    SELECT run, seq::text, date_part('epoch', at) * 1000 AS at, server = pg_postmaster_start_time() AS "isHere",
      CASE WHEN server <> pg_postmaster_start_time()
        THEN to_char(server AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') END AS other
    FROM gateway_run WHERE server IS NOT NULL OR run = ANY ($1)`,
};

const READ_ALL_RUNS = READ_RUNS.text.replace(/WHERE server IS NOT NULL.*/, '');

/** One that is locked is being counted. */
const COUNT = {
  name: 'postern-count-run',
  text: `
    UPDATE gateway_run SET seq = seq + $3, at = clock_timestamp(), server = pg_postmaster_start_time()
    WHERE run = (SELECT run FROM gateway_run WHERE run = $1 FOR UPDATE SKIP LOCKED)
      AND pg_postmaster_start_time() = $2::timestamptz
    RETURNING seq::text, (SELECT (extract(epoch FROM r.at) * 1000)::float8 FROM gateway_run r WHERE r.run = $1) AS before`,
};

const BEGIN = `
  INSERT INTO gateway_run (run, seq, at, server)
  SELECT $1::uuid, $3::bigint, COALESCE(to_timestamp($4::float8 / 1000), clock_timestamp()), $5::timestamptz
  WHERE pg_postmaster_start_time() = $2::timestamptz ON CONFLICT DO NOTHING`;

const ADVANCE = `
  UPDATE gateway_run SET seq = GREATEST(seq, $3::bigint), at = clock_timestamp(), server = pg_postmaster_start_time()
  WHERE run = $1 AND pg_postmaster_start_time() = $2::timestamptz`;

/** Others may have noticed it first, or a later one. What a process knows of its own run is exact. */
const NOTE = `
  INSERT INTO database_regression AS r (id, server, lost_from, gap_seconds, state, runs, number)
  SELECT $1::uuid, $2::timestamptz, to_timestamp($3::float8 / 1000), $4::int, $5, $6::jsonb || $7::jsonb,
    GREATEST($8::int, (SELECT max(number) FROM database_regression WHERE server = $2::timestamptz))
  WHERE pg_postmaster_start_time() = $2::timestamptz
  ON CONFLICT (server, number) DO UPDATE SET lost_from = LEAST(r.lost_from, EXCLUDED.lost_from),
    gap_seconds = GREATEST(r.gap_seconds, EXCLUDED.gap_seconds), runs = $6::jsonb || r.runs || $7::jsonb,
    state = CASE WHEN r.state = 'put_back' AND EXCLUDED.state = 'waiting'
      AND r.noticed_at > clock_timestamp() - interval '30 s' THEN 'waiting' ELSE r.state END,
    updated_at = clock_timestamp()
  RETURNING id, number, state`;

const ADD = `
  UPDATE database_regression SET rows_put_back = rows_put_back + $2, rows_skipped = rows_skipped + $3,
    claims_put_back = claims_put_back + $4, ends_put_back = ends_put_back + $5,
    lost_entries = (
      SELECT COALESCE(jsonb_agg(entry ORDER BY entry ->> 'id'), '[]') FROM (
        SELECT DISTINCT ON (entry ->> 'id') entry FROM jsonb_array_elements(lost_entries || $6::jsonb) AS entry) AS distinct_entry),
    updated_at = clock_timestamp()
  WHERE id = $1`;

/** The loss of a run that was noticed last, also on a server before this one. */
const LAST_LOSS = `
  SELECT state, runs -> $1 ->> 'surviving' AS surviving FROM database_regression
  WHERE runs ? $1 ORDER BY noticed_at DESC LIMIT 1`;

const END_RUN = 'UPDATE gateway_run SET server = NULL WHERE run = $1';
/** Its process may have slept: it sets the server again when it is counted. */
const END_UNCOUNTED = `
  UPDATE gateway_run g SET server = NULL FROM unnest($1::uuid[], $2::bigint[]) AS old (run, seq)
  WHERE g.run = old.run AND g.seq = old.seq AND g.server IS NOT NULL`;
const END_SILENT = `
  UPDATE gateway_run SET server = NULL
  WHERE run IN (SELECT run FROM gateway_run WHERE run = ANY ($1) FOR UPDATE SKIP LOCKED)
    AND server <> pg_postmaster_start_time()`;

/** Those that seem to run and were not counted for an hour, and those that are to be removed. */
const READ_OLD = `
  SELECT run, seq::text FROM gateway_run
  WHERE at < clock_timestamp() - CASE WHEN server IS NULL THEN interval '7 days' ELSE interval '1 hour' END`;

/** The seq is that of an earlier read: a run that has counted since lives. */
const FORGET = `
  DELETE FROM gateway_run g USING unnest($1::uuid[], $2::bigint[]) AS old (run, seq)
  WHERE g.run = old.run AND g.seq = old.seq AND g.at < clock_timestamp() - interval '7 days'`;

/** A regression that is noted for the server. */
export interface Noted {
  readonly id: string;
  /** Counts those of one server, from 1. */
  readonly number: number;
  readonly state: RegressionState;
  readonly from: number | null;
  readonly gap: number | null;
  readonly runs: Record<string, LostRun>;
}

export interface Found {
  readonly server: string;
  readonly now: number;
  readonly isReadOnly: boolean;
  /** Those that run, and those that were asked for. */
  readonly runs: Map<string, RunRow>;
  /** The latest one of this server. */
  readonly regression: Noted | null;
}

/**
 * What is there. Call before anything is written: it is then exactly what has survived.
 *
 * @param client a session of one server
 * @param ended runs that may have ended; null: all
 */
export async function readRuns(client: Client, ended: readonly string[] | null): Promise<Found> {
  type Row = { run: string; seq: string; at: number; isHere: boolean | null; other: string | null };
  const found = (await client.query<Omit<Found, 'runs'>>(READ_SERVER)).rows[0]!;
  const { rows } = await client.query<Row>(
    ended === null ? READ_ALL_RUNS : { ...READ_RUNS, values: [ended] },
  );
  const runs = rows.map(({ run, seq, at, isHere, other }): [string, RunRow] => [
    run,
    { run, seq: BigInt(seq), at, server: isHere === true ? found.server : other },
  ]);
  return { ...found, runs: new Map(runs) };
}

/** Runs that were not counted for an hour or, if they have ended, for a week, and their seq. */
export async function readOldRuns(client: Client): Promise<Map<string, string>> {
  const { rows } = await client.query<{ run: string; seq: string }>(READ_OLD);
  return new Map(rows.map(({ run, seq }) => [run, seq]));
}

/** @returns whether nothing of a run is to be put back that has no more than this seq there: so it was decided, or is to be */
export async function isLeft(client: Client, run: string, seq: bigint): Promise<boolean> {
  type Row = { state: RegressionState; surviving: string };
  const [last] = (await client.query<Row>(LAST_LOSS, [run])).rows;
  return last !== undefined && last.state !== 'put_back' && BigInt(last.surviving) >= seq;
}

/** @returns null if the row is locked, is not there, or the server is another one */
export async function countRun(
  client: Client,
  run: string,
  server: string,
  isCounted: boolean,
): Promise<{ seq: string; before: number } | null> {
  const values = [run, server, isCounted ? 1 : 0];
  return (await client.query<{ seq: string; before: number }>({ ...COUNT, values })).rows[0] ?? null;
}

/**
 * Makes the row of a run, unless it is there.
 *
 * @param at when it was written last, ms since 1970; null: now
 * @param server for which it has put back what was lost
 * @param on the server that runs
 */
export async function beginRun(
  client: Client,
  { run, seq, at, server }: Omit<RunRow, 'at'> & { at: number | null },
  on: string,
): Promise<void> {
  await client.query(BEGIN, [run, on, seq.toString(), at, server]);
}

/** @returns false if the server is another one, or the run has no row */
export async function advanceRun(client: Client, run: string, server: string, seq: bigint): Promise<boolean> {
  return (await client.query(ADVANCE, [run, server, seq.toString()])).rowCount === 1;
}

/**
 * Notes a regression.
 *
 * @param own what this process knows of its own run
 * @param number of the regression on this server; the latest one gets the rest of what is lost if it has a higher one
 * @throws Error if the server is another one
 */
export async function note(
  client: Client,
  server: string,
  { from, gap, state }: { from: number | null; gap: number | null; state: RegressionState },
  others: Record<string, LostRun>,
  own: Record<string, LostRun>,
  number = 1,
): Promise<Pick<Noted, 'id' | 'number' | 'state'>> {
  const values = [uuidv7(), server, from, gap, state, JSON.stringify(others), JSON.stringify(own), number];
  const { rows } = await client.query<Pick<Noted, 'id' | 'number' | 'state'>>(NOTE, values);
  if (rows[0] === undefined) throw new Error('Postgres is another server than before');
  return rows[0];
}

/** Adds what one process has put back. */
export async function addPutBack(client: Client, id: string, counts: PutBack): Promise<void> {
  const { rows = 0, skippedRows = 0, claims = 0, ends = 0, lostEntries = [] } = counts;
  await client.query(ADD, [id, rows, skippedRows, claims, ends, JSON.stringify(lostEntries)]);
}

/** Nobody waits any more for a run that ends. */
export async function endRun(client: Client, run: string): Promise<void> {
  await client.query(END_RUN, [run]);
}

/** The same for runs that have not responded. */
export async function endSilentRuns(client: Client, runs: readonly string[]): Promise<void> {
  await client.query(END_SILENT, [runs]);
}

/** Runs that have ended without saying so, unless they were counted since. @param runs with their seq */
export async function endUncountedRuns(client: Client, runs: ReadonlyMap<string, string>): Promise<void> {
  await client.query(END_UNCOUNTED, [[...runs.keys()], [...runs.values()]]);
}

/** @param runs with their seq */
export async function forgetRuns(client: Client, runs: ReadonlyMap<string, string>): Promise<void> {
  await client.query(FORGET, [[...runs.keys()], [...runs.values()]]);
}
