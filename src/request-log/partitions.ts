import { setTimeout as sleep } from 'node:timers/promises';
import type { ClientBase } from 'pg';
import { ADVISORY_LOCKS } from '../database/advisory-locks.js';
import { patience } from '../platform/patience.js';

export const DAY_MS = 86_400_000;
const DAYS_AHEAD = 7;
/** How long DROP waits for its lock, attempt by attempt. Meanwhile writers queue; their rows wait in the journal. */
const DROP_TIMEOUTS_MS = [200, 500, 1_500];
/** Creating a day needs no lock that a reader or a writer of the log holds. */
const CREATE_TIMEOUT = patience('the lock of partitions', 2_000);

/** A partition of `request_log`; bounds in Unix milliseconds, `to` exclusive. */
export interface Partition {
  /** Quoted where needed. */
  table: string;
  from: number;
  to: number;
}

/** First millisecond of the UTC day. Numbers, because no time zone can change them. */
export function dayOf(ms: number): number {
  return Math.floor(ms / DAY_MS) * DAY_MS;
}

/** `request_log_20310131`; `copy` distinguishes it from a table of that name that is not a partition. */
export function tableName(day: number, copy = 0): string {
  const date = new Date(day).toISOString().split('T')[0]!;
  return `request_log_${date.replace(/\D/g, '')}${copy === 0 ? '' : `_${copy}`}`;
}

/** Time of the database server in Unix milliseconds. */
export async function databaseClock(client: ClientBase): Promise<number> {
  const { rows } = await client.query<{ now: number }>(
    'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now',
  );
  return rows[0]!.now;
}

// By their bounds and not by their names, because one may have been attached by hand. pg_get_expr writes bounds in the
// session's time zone and date style, and the cast back reads them in the same.
const LIST = `
  SELECT c.oid::regclass::text AS "table",
         COALESCE(extract(epoch FROM substring(bound, 'FROM \\(''([^'']+)''\\)')::timestamptz)::float8 * 1000, '-Infinity') AS "from",
         COALESCE(extract(epoch FROM substring(bound, 'TO \\(''([^'']+)''\\)')::timestamptz)::float8 * 1000, 'Infinity') AS "to"
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid, pg_get_expr(c.relpartbound, c.oid) AS bound
  WHERE i.inhparent = 'request_log'::regclass
  ORDER BY 2`;

/** Every partition, oldest first. */
export async function listPartitions(client: Pick<ClientBase, 'query'>): Promise<Partition[]> {
  return (await client.query<Partition>(LIST)).rows;
}

/** When the oldest day begins that the log has; now if it has none. */
export async function oldestDay(client: Pick<ClientBase, 'query'>): Promise<Date> {
  // A default partition, attached by hand, has no bounds.
  const first = (await listPartitions(client)).find(({ from }) => Number.isFinite(from));
  return new Date(first?.from ?? Date.now());
}

function covers(partitions: readonly Partition[], ms: number): boolean {
  return partitions.some(({ from, to }) => from <= ms && ms < to);
}

/** Has retention dropped the day of a call that started then? Days before today are created before they begin. @param now of Postgres */
export function isDropped(partitions: readonly Partition[], now: number, ms: number): boolean {
  return ms < dayOf(now) && !covers(partitions, ms);
}

/** Creates the partitions of today and the next seven days by the database's clock. @returns the new tables */
export async function createDaysAhead(client: ClientBase, lockTimeoutMs?: number): Promise<string[]> {
  const today = dayOf(await databaseClock(client));
  const days = Array.from({ length: DAYS_AHEAD + 1 }, (_, i) => today + i * DAY_MS);
  return createPartitions(client, days, lockTimeoutMs);
}

/**
 * Creates the partitions of these times where they are missing. Safe to run in any number of processes at once, and
 * without blocking calls.
 *
 * @param times Unix milliseconds
 * @returns the new tables
 * @throws SQLSTATE 55P03 if a lock could not be acquired in time
 */
export async function createPartitions(
  client: ClientBase,
  times: readonly number[],
  lockTimeoutMs = CREATE_TIMEOUT.ms,
): Promise<string[]> {
  const created: string[] = [];
  const missing = [...new Set(times)].sort((a, b) => a - b);
  for (let known = await listPartitions(client); ;) {
    const ms = missing.find((time) => !covers(known, time));
    if (ms === undefined) return created;
    const table = await inTransaction(client, lockTimeoutMs, async () => {
      await client.query('SELECT pg_advisory_xact_lock($1)', [ADVISORY_LOCKS.partitions]);
      known = await listPartitions(client);
      return covers(known, ms) ? null : createPartition(client, known, ms);
    });
    if (table !== null) created.push(table);
    known = await listPartitions(client);
  }
}

/**
 * Creates the partition of the day in which this time lies, or of the part of the day that others leave free.
 *
 * CREATE TABLE … PARTITION OF would take ACCESS EXCLUSIVE on the log, and every writer would queue with it behind a long
 * export. ATTACH takes SHARE UPDATE EXCLUSIVE, which readers and writers do not conflict with. It finds an empty table
 * with all indexes, so it neither scans nor builds anything. One transaction: a process that is killed leaves nothing. A
 * function in Postgres does it, with the rights of the owner of the log, which the gateway's role need not be.
 */
async function createPartition(
  client: ClientBase,
  others: readonly Partition[],
  ms: number,
): Promise<string> {
  const day = dayOf(ms);
  const from = Math.max(day, ...others.map(({ to }) => to).filter((to) => to <= ms));
  const to = Math.min(day + DAY_MS, ...others.map((other) => other.from).filter((start) => start > ms));
  const table = await freeName(client, day);
  await client.query('SELECT request_log_create_partition($1, to_timestamp($2), to_timestamp($3))', [
    table,
    from / 1_000,
    to / 1_000,
  ]);
  return table;
}

/** Finds an unused table name: a detached table with the day's name, for example an archive, is left alone. */
async function freeName(client: ClientBase, day: number): Promise<string> {
  for (let copy = 0; ; copy++) {
    const name = tableName(day, copy);
    const { rows } = await client.query<{ taken: boolean }>('SELECT to_regclass($1) IS NOT NULL AS taken', [
      name,
    ]);
    if (!rows[0]!.taken) return name;
  }
}

export interface Retention {
  /** The clock of this process, in Unix milliseconds, which dates its rows. */
  now: number;
  /** Days for which a row is retained at least. */
  days: number;
  /** Checked before each drop. */
  stopped: () => boolean;
  /** Checked before each drop: true if something still reads this partition, which then stays until the next run. */
  isNeeded: (table: string) => Promise<boolean>;
  /** Runs in the transaction of each drop, before it. What it returns is called once that is committed. */
  beforeDrop?: (table: string) => Promise<() => void>;
}

export interface Dropped {
  tables: string[];
  /** True if expired partitions were retained because the clocks cannot be trusted yet. */
  postponed: boolean;
}

/**
 * Drops the partitions of expired days: whole tables, without a scan and without dead rows. If rows for such a day arrive
 * later, from the journal of a replica that was down for long, their partition is created again and dropped with the next
 * run.
 */
export async function dropExpired(
  client: ClientBase,
  { now, days, stopped, isNeeded, beforeDrop }: Retention,
): Promise<Dropped> {
  const dropped: Dropped = { tables: [], postponed: false };
  const partitions = await listPartitions(client);
  const clocks = [now, await databaseClock(client)];
  // Expired by both clocks, and only if the log has a partition for yesterday: after a jump of the clock (or a long pause)
  // operators have a day to notice before rows that then count as old are deleted.
  const isTrusted = clocks.every((clock) => covers(partitions, dayOf(clock) - DAY_MS));
  const oldestKept = dayOf(Math.min(...clocks) - days * DAY_MS);
  for (const { table, to } of partitions) {
    if (to > oldestKept || stopped()) continue;
    if (!isTrusted) dropped.postponed = true;
    else if (!(await isNeeded(table))) {
      await dropPartition(client, table, beforeDrop);
      dropped.tables.push(table);
    }
  }
  return dropped;
}

/** Drops one partition. DROP needs ACCESS EXCLUSIVE on the log, so it fails instead of blocking others for long. */
async function dropPartition(
  client: ClientBase,
  table: string,
  beforeDrop: Retention['beforeDrop'],
): Promise<void> {
  for (const [attempt, timeoutMs] of DROP_TIMEOUTS_MS.entries()) {
    let onDropped;
    try {
      onDropped = await inTransaction(client, timeoutMs, async () => {
        const callback = await beforeDrop?.(table);
        await client.query('SELECT request_log_drop_partition($1::regclass)', [table]);
        return callback;
      });
    } catch (error) {
      const { code } = error as { code?: string };
      // 42P01: another replica has dropped it meanwhile.
      if (code === '42P01') return;
      // 55P03: a long export or a backup reads the log. 40P01: deadlock.
      if ((code !== '55P03' && code !== '40P01') || attempt === DROP_TIMEOUTS_MS.length - 1) throw error;
      await sleep(200 + Math.random() * 800);
      continue;
    }
    return onDropped?.();
  }
}

async function inTransaction<T>(
  client: ClientBase,
  lockTimeoutMs: number,
  work: () => Promise<T>,
): Promise<T> {
  await client.query('BEGIN');
  try {
    await client.query(`SET LOCAL lock_timeout = ${lockTimeoutMs}`);
    const result = await work();
    await client.query('COMMIT');
    return result;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  }
}
