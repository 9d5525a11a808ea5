import { Injectable, Logger } from '@nestjs/common';
import { ADVISORY_LOCKS } from '../database/advisory-locks.js';
import { Retention } from '../database/retention.js';

/** Rows of one transaction: it ends within a moment, and so does the lock. */
const ROWS = 5_000;

const LOCK = 'SELECT pg_try_advisory_xact_lock($1) AS locked';

/** A key with 100 rejected requests in 5 minutes, at most once an hour. A client that is too fast is told so by 429. */
const HIGH = `
  SELECT webhook_emit('refusals.high', data, once) FROM (
    SELECT format('refusals.high %s %s', r.key_id, extract(epoch FROM date_trunc('hour', now()))) AS once,
           jsonb_build_object('team_id', r.team_id, 'key_id', r.key_id, 'team', t.name, 'key', k.name,
             'calls', sum(r.calls), 'code', (array_agg(r.code ORDER BY r.calls DESC))[1], 'minutes', 5) AS data
    FROM refusal r JOIN gateway_key k ON k.id = r.key_id JOIN team t ON t.id = k.team_id
    WHERE r.minute > now() - interval '6 minutes' AND r.code NOT IN ('rate_limit_exceeded', 'too_many_requests')
    GROUP BY r.team_id, r.key_id, t.name, k.name HAVING sum(r.calls) >= 100) high`;

/** Rows by minute that are older than 2 days become rows by hour, without the model. */
const FOLD = `
  WITH old AS (
    SELECT ctid FROM refusal
    WHERE minute < date_trunc('hour', now() - interval '2 days', 'UTC')
      AND (model <> '' OR minute <> date_trunc('hour', minute, 'UTC'))
    LIMIT ${ROWS} FOR UPDATE),
  gone AS (DELETE FROM refusal WHERE ctid IN (SELECT ctid FROM old) RETURNING *),
  added AS (
    INSERT INTO refusal AS r (minute, team_id, key_id, code, rule_nr, provider, model, calls, last_id, last_at)
    SELECT date_trunc('hour', minute, 'UTC'), team_id, key_id, code, rule_nr, provider, '', sum(calls),
           (array_agg(last_id ORDER BY last_at DESC))[1], max(last_at)
    FROM gone GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
    ON CONFLICT ON CONSTRAINT refusal_pkey DO UPDATE
      SET calls = r.calls + EXCLUDED.calls, last_at = GREATEST(r.last_at, EXCLUDED.last_at),
          last_id = CASE WHEN EXCLUDED.last_at >= r.last_at THEN EXCLUDED.last_id ELSE r.last_id END)
  SELECT count(*)::int AS rows FROM gone`;

const DELETE_OLD = `
  WITH gone AS (
    DELETE FROM refusal WHERE ctid IN (
      SELECT ctid FROM refusal WHERE minute < now() - make_interval(days => $1) LIMIT ${ROWS}) RETURNING 1)
  SELECT count(*)::int AS rows FROM gone`;
/** Processes that have ended. One that lives and has counted nothing for a day begins a row again. */
const DELETE_PROCESSES = `DELETE FROM refusal_writer WHERE written_at < now() - interval '1 day'`;

/** Announces keys with many rejected requests, and keeps the counts few: in one process of all at a time. */
@Injectable()
export class RefusalRetention extends Retention {
  protected readonly logger = new Logger('Refusals');
  protected readonly failure = 'Counts of rejected requests could not be maintained';

  /** Also with REFUSALS=off: what was counted before is deleted in time. */
  run(): Promise<void> {
    let isFirst = true;
    return this.repeat(() =>
      this.dataSource.transaction(async (manager) => {
        const [lock] = await manager.query<{ locked: boolean }[]>(LOCK, [ADVISORY_LOCKS.refusals]);
        if (!lock!.locked) return false;
        if (isFirst) {
          await manager.query(HIGH);
          await manager.query(DELETE_PROCESSES);
        }
        isFirst = false;
        const [folded] = await manager.query<{ rows: number }[]>(FOLD);
        const [deleted] = await manager.query<{ rows: number }[]>(DELETE_OLD, [
          this.env.refusalRetentionDays,
        ]);
        return folded!.rows === ROWS || deleted!.rows === ROWS;
      }),
    );
  }
}
