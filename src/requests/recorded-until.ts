import type { ClientBase } from 'pg';

/**
 * Up to when the log is complete: whatever is recorded at this time or earlier can be seen by any query that begins
 * after the answer, so that one who has read up to it may go on with `recorded_after` there and misses nothing.
 *
 * A row has its `recorded_at` before it can be seen: in between lies its writer's commit, and a replica's slow disk or a
 * transaction somebody left open makes that long. Every writer holds ROW EXCLUSIVE on the parent table from before it
 * takes the time for its first row until it can be seen. So: those without the lock at this statement's start will take
 * a later time than that start; for those that hold it the start of their transaction bounds the times they took.
 *
 * What bends it: a server clock that steps back (then re-read a little and tell rows apart by their id).
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

/** To be asked outside of any transaction, before the question whose answer it bounds. */
export async function recordedUntil(client: Pick<ClientBase, 'query'>): Promise<Date> {
  const { rows } = await client.query<{ until: Date }>(UNTIL);
  return rows[0]!.until;
}
