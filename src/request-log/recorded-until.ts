import type { ClientBase } from 'pg';

/**
 * Computes the high watermark of the log: every row with `recorded_at` at or before it is visible to any query that
 * starts after this one. A reader that has read up to it can continue with it as `recorded_after` and misses no row.
 *
 * A row gets its `recorded_at` before it becomes visible: its writer must still commit, which a slow disk or an open
 * transaction delays. Every writer holds ROW EXCLUSIVE on the parent table from before the `recorded_at` of its first row
 * until its rows are visible. So writers without the lock at the start of this statement will use a later time than that
 * start; for those that hold it, the start of their transaction is a lower bound.
 *
 * The one exception is a server clock that steps back; a reader then reads a little again and compares rows by their id.
 */
const UNTIL = `
  SELECT date_trunc('milliseconds', LEAST(now(), min(
           CASE WHEN a.pid IS NULL OR a.state = 'idle' THEN now() -- it came or went just now: later or visible
                WHEN a.xact_start IS NULL THEN now() - interval '1 minute' -- another role's: twice a writer's patience
                ELSE a.xact_start END))) - interval '1 millisecond' AS until
  FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
  WHERE l.locktype = 'relation' AND l.relation = 'request_log'::regclass AND l.granted
    AND l.mode = 'RowExclusiveLock'
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

/** Call outside of a transaction, before the query whose result it bounds. */
export async function recordedUntil(client: Pick<ClientBase, 'query'>): Promise<Date> {
  const { rows } = await client.query<{ until: Date }>(UNTIL);
  return rows[0]!.until;
}
