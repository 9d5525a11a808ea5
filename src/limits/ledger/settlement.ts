import { CHARGED_RULES, CHARGED_SUBJECT } from '../../limit-rules/log-charges.js';

/** The start of the period of a rule `r` that holds `at`; `total` and `session` have one period. */
const startOfPeriod = (at: string) =>
  `CASE WHEN r.period IN ('total', 'session') THEN to_timestamp(0) ELSE date_trunc(r.period, ${at}, r.time_zone) END`;

/** Above every budget; a meter stays there. */
export const MAX_SPENT = '4000000000000000000';

/** What each meter gets of charges: `charged` is a query of them, with one row for each call. */
const sharesOf = (charged: string, which: string) => `
    SELECT rank, rule_id, subject, window_start, GREATEST(LEAST(sum(amount), ${MAX_SPENT}), -${MAX_SPENT})::bigint AS spent, max(last) AS last
    FROM (
      SELECT r.rank, r.id AS rule_id, ${CHARGED_SUBJECT} AS subject, ${startOfPeriod('c.quarter')} AS window_start,
             CASE r.resource WHEN 'usd' THEN c.usd * 1000000000 ELSE c.tokens END AS amount, c.last
      FROM (
        SELECT charge_rules, limit_subject, limit_session,
               CASE WHEN charge_rules IS NULL THEN key_id END AS key_id,
               CASE WHEN charge_rules IS NULL THEN team_id END AS team_id,
               date_bin('15 minutes', started_at, to_timestamp(0)) AS quarter,
               sum(charge_usd) AS usd, sum(charge_tokens) AS tokens, max(started_at) AS last
        FROM (${charged}) new
        GROUP BY 1, 2, 3, 4, 5, 6
      ) c
      CROSS JOIN ${CHARGED_RULES}
      WHERE r.period NOT IN ('minute', 'at_once')
    ) charge
    WHERE ${which} AND subject IS NOT NULL
    GROUP BY rank, rule_id, subject, window_start`;

/**
 * Adds charges to what is spent: `charged` has one row for each new row of the log. They are added up first, so that the
 * rules are looked up a few times, not for each row; periods begin at a quarter of an hour in every time
 * zone. A meter that another statement has locked is waited for; all statements lock meters in the order of their
 * primary key.
 *
 * @param result see ChargeKeeper
 */
export function settlement(charged: string, written = '', result = ''): string {
  const [parts, end] = result === '' ? ['', ''] : [', parts AS (', `) ${result}`];
  return `
    WITH ${written === '' ? '' : `${written},`} added AS (
${sharesOf(charged, 'amount > 0')}
    ), settled AS (
      INSERT INTO limit_meter AS m (rule_id, subject, window_start, spent, admitted_at)
      SELECT rule_id, subject, window_start, spent, last FROM added WHERE rank = 0
      ORDER BY rule_id, subject, window_start
      ON CONFLICT (rule_id, subject, window_start)
      DO UPDATE SET spent = LEAST(m.spent::numeric + EXCLUDED.spent, ${MAX_SPENT})::bigint,
        admitted_at = GREATEST(m.admitted_at, EXCLUDED.admitted_at)
      RETURNING 1)${parts}
    INSERT INTO limit_spent AS p (rule_id, subject, window_start, part, spent, admitted_at)
    SELECT rule_id, subject, window_start, pg_backend_pid() % 64, spent, last FROM added
    WHERE rank > 0 AND (SELECT count(*) FROM settled) >= 0
    ORDER BY rank, rule_id, subject, window_start
    ON CONFLICT (rule_id, subject, window_start, part)
    DO UPDATE SET spent = LEAST(p.spent::numeric + EXCLUDED.spent, ${MAX_SPENT})::bigint,
      admitted_at = GREATEST(p.admitted_at, EXCLUDED.admitted_at)${end}`;
}

/**
 * Corrects charges that meters have already: `corrected` has one row for each call, with the difference. What is lowered was
 * counted before, so it lowers only what is there; and what a reset had given back of it is not given back twice. Returns
 * the numbers of rows of `guarded` and `corrected`.
 */
export function correction(corrected: string): string {
  return `
    WITH ${corrected},
    added AS (${sharesOf('SELECT * FROM corrected', 'amount <> 0')}),
    locked AS (
      SELECT m.rule_id FROM added a JOIN limit_meter m USING (rule_id, subject, window_start)
      WHERE a.rank = 0 OR a.spent < 0
      ORDER BY a.rank, m.rule_id, m.subject, m.window_start
      FOR UPDATE OF m),
    lowered AS (
      UPDATE limit_meter AS m
      SET spent = CASE WHEN a.rank = 0 THEN GREATEST(m.spent + a.spent, 0) ELSE m.spent END,
          credited = GREATEST(m.credited + a.spent, 0)
      FROM added a
      WHERE a.spent < 0 AND (SELECT count(*) FROM locked) >= 0
        AND m.rule_id = a.rule_id AND m.subject = a.subject AND m.window_start = a.window_start
      RETURNING 1),
    raised AS (
      INSERT INTO limit_meter AS m (rule_id, subject, window_start, spent, admitted_at)
      SELECT rule_id, subject, window_start, spent, last FROM added
      WHERE rank = 0 AND spent > 0 AND (SELECT count(*) FROM lowered) >= 0
      ORDER BY rule_id, subject, window_start
      ON CONFLICT (rule_id, subject, window_start)
      DO UPDATE SET spent = LEAST(m.spent::numeric + EXCLUDED.spent, ${MAX_SPENT})::bigint,
        admitted_at = GREATEST(m.admitted_at, EXCLUDED.admitted_at)
      RETURNING 1),
    parts AS (
      INSERT INTO limit_spent AS p (rule_id, subject, window_start, part, spent, admitted_at)
      SELECT rule_id, subject, window_start, pg_backend_pid() % 64, spent, last FROM added
      WHERE rank > 0 AND (SELECT count(*) FROM raised) >= 0
      ORDER BY rank, rule_id, subject, window_start
      ON CONFLICT (rule_id, subject, window_start, part)
      DO UPDATE SET spent = LEAST(p.spent::numeric + EXCLUDED.spent, ${MAX_SPENT})::bigint,
        admitted_at = GREATEST(p.admitted_at, EXCLUDED.admitted_at))
    SELECT (SELECT count(*) FROM guarded)::int AS guarded, (SELECT count(*) FROM corrected)::int AS corrected`;
}

/** Returns what a process run held of limits: it has ended, and its rows are in Postgres. @param run its UUID */
export async function forgetHolds(
  client: { query(text: string, values: unknown[]): Promise<unknown> },
  run: string,
): Promise<void> {
  await client.query('SELECT limit_forget($1)', [run]);
}
