import { HttpException, HttpStatus, Injectable } from '@nestjs/common';
import pg from 'pg';
import type { Scope } from '../admin/access/access.js';
import { oldestDay } from '../request-log/partitions.js';
import { inSnapshot, ReaderPool } from './reader-pool.js';
import { SESSION_COLUMN } from './request-query.js';
import { patience } from '../platform/patience.js';

const HOUR_MS = 3_600_000;
/** How long a search reads. The log has no index for what it looks for: one would slow down every insert. */
const READING = patience('a search of the log', 2_000);
/** A window that took less than this part of the time is followed by one that is four times as long. */
const QUICK = 1 / 16;
/** Searches that wait for another one of the same pool. */
const MAX_WAITING = 4;
const MAX_CALLS = 5;
/** SQLSTATE query_canceled. */
const CANCELED = '57014';

const SEARCH = `
  SELECT (array_agg(id ORDER BY started_at DESC, id DESC) FILTER (WHERE provider_request_id = $1))[1:${MAX_CALLS}] AS calls,
         max(started_at) FILTER (WHERE model = $1) AS model,
         max(started_at) FILTER (WHERE end_user = $1) AS end_user,
         max(started_at) FILTER (WHERE ${SESSION_COLUMN} = $1) AS session
  FROM request_log
  WHERE started_at >= $2 AND ($3::timestamptz IS NULL OR started_at < $3)
    AND ($4::uuid[] IS NULL OR team_id = ANY ($4))
    AND (provider_request_id = $1 OR model = $1 OR end_user = $1 OR ${SESSION_COLUMN} = $1)`;

/** What a search of the log found, the newest of each. */
export interface LogFinds {
  /** IDs of calls whose response the provider gave this ID. */
  calls: readonly string[];
  /** When the newest call with this model, end user or session began; null if there is none. */
  model: Date | null;
  end_user: Date | null;
  session: Date | null;
  /** The log was searched from this time on. */
  from: Date;
  /** The log has no older rows. */
  isWhole: boolean;
}

const NOTHING = { calls: [], model: null, end_user: null, session: null };

/** Finds calls by what has no index: the provider's request ID, the model, the end user and the session. */
@Injectable()
export class LogSearch {
  private readonly running = new Map<pg.Pool, Promise<unknown>[]>();

  constructor(private readonly pool: ReaderPool) {}

  /**
   * Reads the log from its end towards its beginning, in ever longer windows, until one of them has the text, or the time
   * is up. Searches of one process wait for each other, so that they leave a connection to other queries.
   *
   * @param before the log is searched up to this time; null: to its end
   * @param signal ends the search before its next window
   * @throws HttpException 429 if too many searches are waiting
   */
  async find(text: string, scope: Scope, before: Date | null, signal: AbortSignal): Promise<LogFinds> {
    const pool = this.pool.of(scope);
    const others = this.running.get(pool) ?? [];
    if (others.length > MAX_WAITING)
      throw new HttpException(
        'Too many searches of the request log are running. Try again in a few seconds.',
        HttpStatus.TOO_MANY_REQUESTS,
      );
    const search = Promise.allSettled(others).then(() => read(pool, text, scope, before, signal));
    this.running.set(pool, [...others, search]);
    try {
      return await search;
    } finally {
      this.running.set(
        pool,
        (this.running.get(pool) ?? []).filter((other) => other !== search),
      );
    }
  }
}

async function read(
  pool: pg.Pool,
  text: string,
  scope: Scope,
  before: Date | null,
  signal: AbortSignal,
): Promise<LogFinds> {
  const end = Date.now() + READING.ms;
  const oldest = await oldestDay(pool);
  let to = before;
  let from = before ?? new Date();
  for (let hours = 1; from > oldest && !signal.aborted;) {
    const start = new Date(Math.max(from.getTime() - hours * HOUR_MS, oldest.getTime()));
    const began = Date.now();
    const found = await inWindow(pool, [text, start, to, scope], end - began);
    if (found === null) break;
    from = start;
    to = start;
    if (found.calls !== null || found.model !== null || found.end_user !== null || found.session !== null)
      return { ...found, calls: found.calls ?? [], from, isWhole: from <= oldest };
    if (Date.now() - began < READING.ms * QUICK) hours *= 4;
  }
  return { ...NOTHING, from, isWhole: from <= oldest };
}

type Row = Pick<LogFinds, 'model' | 'end_user' | 'session'> & { calls: string[] | null };

/** @returns null if the time was up before the window was read */
async function inWindow(pool: pg.Pool, values: unknown[], timeMs: number): Promise<Row | null> {
  if (timeMs < 1) return null;
  try {
    return await inSnapshot(pool, async (client) => {
      await client.query(`SET LOCAL statement_timeout = ${Math.ceil(timeMs)}`);
      return (await client.query<Row>(SEARCH, values)).rows[0]!;
    });
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === CANCELED) return null;
    throw error;
  }
}
