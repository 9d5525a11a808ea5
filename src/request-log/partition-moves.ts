import { setTimeout as sleep } from 'node:timers/promises';
import type { ClientBase } from 'pg';
import { DAY_MS, type Day, sqlBounds, tableName } from './partition-day.js';
import { isDefaultEmpty } from './partition-list.js';

/** Rows copied by one statement. */
const BATCH = 5_000;
/** Copying goes on without locks until so little is new that the rest is quick under one. */
const LITTLE = 2_000;
const MOST_PASSES = 10;
/** How long a lock is waited for, in turn. Meanwhile writers queue up behind us; their rows wait in the journal. */
const LOCK_TIMEOUTS_MS = [200, 500, 1_500];
/** Marks tables that are not attached yet, so that what a killed process left is known as ours. */
const MARK = 'postern: being filled, not attached yet';

/** The rows of the default partition changed in a way that was not prepared for: look again, then repeat. */
export class PlanOutdated extends Error {}

/** A table that is to become the partition of a day. */
interface Made {
  day: Day;
  table: string;
}

/**
 * Gives these days partitions and leaves the default one empty, rows included that are written to it meanwhile.
 *
 * Postgres attaches no partition while the default one holds rows of its range, and rows must be seen in one place at
 * all times. So each day's rows are first copied, in small steps and without any lock, to a table that nobody reads
 * yet. Then, in one short transaction, writers are held back, what came meanwhile is copied too, the default partition
 * is truncated and the tables are attached. Writers wait at the parent table: were they to wait at the default
 * partition, they would wake up with a row that it no longer takes (23514).
 *
 * TRUNCATE takes the rows of days that are not given with it: the caller gives all but the expired ones. (A REPEATABLE
 * READ transaction that has not touched the log yet, a dump's first moment, misses truncated rows: PostgreSQL, "Caveats".)
 *
 * @param stopped asked between the steps
 * @returns rows that left the default partition for one of these days
 * @throws PlanOutdated
 */
export async function makePartitions(
  client: ClientBase,
  days: readonly Day[],
  isExpired: (day: Day) => boolean,
  stopped: () => boolean,
): Promise<number> {
  const made: Made[] = [];
  for (const day of days) made.push({ day, table: await makeTable(client, day) });
  let moved = 0;
  let since: string | null = null;
  if (!(await isDefaultEmpty(client))) {
    since = await writersHorizon(client);
    for (const each of made) moved += await copyDay(client, each, stopped);
    for (let pass = 0; pass < MOST_PASSES; pass++) {
      const next = await writersHorizon(client);
      const fresh: number = await inTransaction(client, () => copySince(client, since!, made, isExpired));
      since = next;
      moved += fresh;
      if (fresh < LITTLE) break;
    }
  }
  await withLocks(client, async () => {
    // ONLY: not the partitions, of which each call needs one and a long export many. When rows move, readers have to wait
    // here too: one that had read the list of partitions already would find the rows in none of them.
    const mode = since === null ? 'SHARE ROW EXCLUSIVE' : 'ACCESS EXCLUSIVE';
    await client.query(`LOCK TABLE ONLY request_log IN ${mode} MODE`);
    await client.query('LOCK TABLE request_log_default IN ACCESS EXCLUSIVE MODE');
    if (!(await isDefaultEmpty(client))) {
      if (since === null) throw new PlanOutdated();
      moved += await copySince(client, since, made, isExpired);
      await client.query('TRUNCATE request_log_default');
    }
    for (const { day, table } of made) await attach(client, day, table);
  });
  return moved;
}

/** Drops a partition whole: no scan, no dead rows. DETACH CONCURRENTLY is refused beside a default partition. */
export async function dropPartition(client: ClientBase, table: string): Promise<void> {
  await withLocks(client, () => client.query(`DROP TABLE ${table}`));
}

async function makeTable(client: ClientBase, day: Day): Promise<string> {
  for (let copy = 0; ; copy++) {
    const table = tableName(day, copy);
    const { rows } = await client.query<{ mark: string | null }>(
      "SELECT obj_description(to_regclass($1), 'pg_class') AS mark WHERE to_regclass($1) IS NOT NULL",
      [table],
    );
    // A table of this name that was detached for the archives stays where it is.
    if (rows[0] !== undefined && rows[0].mark !== MARK) continue;
    const [from, to] = sqlBounds(day);
    // The constraint spares ATTACH a scan under its lock.
    await client.query(`
      DROP TABLE IF EXISTS ${table};
      CREATE TABLE ${table} (LIKE request_log INCLUDING ALL,
        CONSTRAINT being_filled CHECK (started_at >= ${from} AND started_at < ${to}));
      COMMENT ON TABLE ${table} IS '${MARK}'`);
    return table;
  }
}

async function attach(client: ClientBase, day: Day, table: string): Promise<void> {
  const [from, to] = sqlBounds(day);
  await client.query(`
    ALTER TABLE request_log ATTACH PARTITION ${table} FOR VALUES FROM (${from}) TO (${to});
    ALTER TABLE ${table} DROP CONSTRAINT being_filled;
    COMMENT ON TABLE ${table} IS NULL`);
}

async function copyDay(client: ClientBase, { day, table }: Made, stopped: () => boolean): Promise<number> {
  // As text: a time written by hand may have microseconds, which a JavaScript date would lose.
  const sql = `
    WITH batch AS (
      SELECT * FROM request_log_default
      WHERE started_at >= $1 AND started_at < to_timestamp($3) AND (started_at, id) > ($1, $2::uuid)
      ORDER BY started_at, id LIMIT ${BATCH}),
    copied AS (INSERT INTO ${table} SELECT * FROM batch)
    SELECT started_at::text AS at, id, (SELECT count(*)::int FROM batch) AS count
    FROM batch ORDER BY started_at DESC, id DESC LIMIT 1`;
  let at = new Date(day).toISOString();
  let id = '00000000-0000-0000-0000-000000000000';
  for (let total = 0; ;) {
    if (stopped()) throw new PlanOutdated();
    const { rows } = await client.query<{ at: string; id: string; count: number }>(sql, [
      at,
      id,
      (day + DAY_MS) / 1_000,
    ]);
    if (rows[0] === undefined) return total;
    ({ at, id } = rows[0]);
    total += rows[0].count;
  }
}

/**
 * The oldest transaction under way: whatever is not visible yet was or will be written by this one or a later one.
 * Transaction ids and not times, because a clock can step back.
 */
async function writersHorizon(client: ClientBase): Promise<string> {
  const { rows } = await client.query<{ xid: string }>(
    'SELECT pg_snapshot_xmin(pg_current_snapshot())::xid::text AS xid',
  );
  return rows[0]!.xid;
}

/** Copies what transactions from this one on wrote: new rows, and rows mended since they were copied. @returns new ones */
async function copySince(
  client: ClientBase,
  xid: string,
  made: readonly Made[],
  isExpired: (day: Day) => boolean,
): Promise<number> {
  await client.query(
    `CREATE TEMP TABLE request_log_fresh ON COMMIT DROP AS
     SELECT * FROM request_log_default WHERE age(xmin) <= age('${xid}'::xid)`,
  );
  const { rows } = await client.query<{ day: Day }>(`
    SELECT DISTINCT extract(epoch FROM date_trunc('day', started_at, 'UTC'))::float8 * 1000 AS day
    FROM request_log_fresh`);
  let added = 0;
  for (const { day } of rows) {
    const table = made.find((each) => each.day === day)?.table;
    if (table === undefined && isExpired(day)) continue;
    if (table === undefined) throw new PlanOutdated();
    const [from, to] = sqlBounds(day);
    // Some were copied before: those of transactions that had ended while an older one was still under way.
    const removed = await client.query(
      `DELETE FROM ${table} t USING request_log_fresh f WHERE (t.started_at, t.id) = (f.started_at, f.id)`,
    );
    const copied = await client.query(
      `INSERT INTO ${table} SELECT * FROM request_log_fresh WHERE started_at >= ${from} AND started_at < ${to}`,
    );
    added += copied.rowCount! - removed.rowCount!;
  }
  return added;
}

/** Runs the work in a transaction that would rather fail than keep others waiting, and tries again after a pause. */
async function withLocks(client: ClientBase, work: () => Promise<unknown>): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      await inTransaction(client, async () => {
        await client.query(`SET LOCAL lock_timeout = ${LOCK_TIMEOUTS_MS[attempt]!}`);
        await work();
      });
      return;
    } catch (error) {
      const { code } = error as { code?: string };
      // 55P03: a long export or a backup reads the table. 40P01: deadlock.
      if ((code !== '55P03' && code !== '40P01') || attempt === LOCK_TIMEOUTS_MS.length - 1) throw error;
      await sleep(200 + Math.random() * 800);
    }
  }
}

async function inTransaction<T>(client: ClientBase, work: () => Promise<T>): Promise<T> {
  await client.query('BEGIN');
  try {
    const result = await work();
    await client.query('COMMIT');
    return result;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  }
}
