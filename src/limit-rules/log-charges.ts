import type { DataSource, EntityManager } from 'typeorm';
import { ServiceError } from '../errors/service-error.js';
import type { LimitOwner } from './limit-rule.entity.js';

/**
 * The budgets that the charges of calls `c` count in: those that their rows name; of rows that name none, which versions before
 * have journalled, those of their key and its team. A FROM item of rules `r`.
 */
export const CHARGED_RULES = `
  LATERAL (
    SELECT r.* FROM limit_rule r WHERE r.nr = ANY (c.charge_rules)
    UNION ALL
    SELECT r.* FROM (VALUES (c.key_id, 'key'), (c.team_id, 'team')) o (id, scope)
    JOIN limit_rule r ON r.scope_id = o.id AND r.scope IN (o.scope, o.scope || '_end_user')
    WHERE c.charge_rules IS NULL) r`;

/** The meter of a rule `r` in which the charges of calls `c` count. */
export const CHARGED_SUBJECT = `
  CASE WHEN r.scope ~ '_end_user$' THEN c.limit_subject WHEN r.scope ~ '_session$' THEN c.limit_session ELSE '' END`;

const OTHERS = `
  SELECT DISTINCT time_zone FROM limit_rule WHERE time_zone <> $1 ORDER BY 1`;

/**
 * No charge is settled meanwhile, and one that waits for this settles in the new periods: a statement takes its snapshot
 * after its locks. The rules first, as whoever changes them.
 */
const LOCK = 'LOCK TABLE limit_rule, limit_meter IN SHARE ROW EXCLUSIVE MODE';

/**
 * What was spent in the present periods of the new time zone: what those of the old one have, with the charges of the hours
 * in which only one of both lies. So it takes only these hours of the log, which may be long, or dropped. A budget that was
 * created after them has no charges from then.
 */
const CARRY_OVER = `
  WITH period AS MATERIALIZED (
    SELECT rule.period, rule.time_zone, new.starts, old.starts AS was, least(new.begins, old.begins) AS first,
           greatest(new.begins, old.begins) AS last, sign(extract(epoch FROM old.begins - new.begins)) AS sign
    FROM (SELECT DISTINCT period, time_zone FROM limit_rule
          WHERE time_zone <> $1 AND period IN ('day', 'week', 'month')) rule
    CROSS JOIN LATERAL limit_window(rule.period, $1, statement_timestamp()) new
    CROSS JOIN LATERAL limit_window(rule.period, rule.time_zone, statement_timestamp()) old),
  differing AS (
    SELECT period, time_zone, last, key_id, team_id, limit_subject, limit_session, charge_rules,
           sum(sign * charge_usd) * 1000000000 AS usd, sum(sign * charge_tokens) AS tokens
    FROM period JOIN request_log ON started_at >= first AND started_at < last
    WHERE charge_usd IS NOT NULL OR charge_tokens IS NOT NULL
    GROUP BY period, time_zone, last, key_id, team_id, limit_subject, limit_session, charge_rules),
  charge AS (
    SELECT r.id AS rule_id, ${CHARGED_SUBJECT} AS subject,
           CASE r.resource WHEN 'usd' THEN c.usd ELSE c.tokens END AS spent,
           0 AS credited, 0 AS refused, 0 AS alerted, NULL::timestamptz AS exhausted_at
    FROM differing c
    CROSS JOIN ${CHARGED_RULES}
    -- Its ID is a UUIDv7, which begins with the milliseconds of its creation.
    WHERE r.period = c.period AND r.time_zone = c.time_zone
      AND to_timestamp(('x' || left(replace(r.id::text, '-', ''), 12))::bit(48)::bigint / 1000.0) < c.last
    UNION ALL
    SELECT m.rule_id, m.subject, m.spent, m.credited, m.refused, m.alerted, m.exhausted_at
    FROM period p
    JOIN limit_rule r ON r.period = p.period AND r.time_zone = p.time_zone
    JOIN limit_meter m ON m.rule_id = r.id AND m.window_start = p.was)
  INSERT INTO limit_meter (rule_id, subject, window_start, spent, credited, refused, alerted, exhausted_at)
  SELECT c.rule_id, c.subject, p.starts, least(greatest(sum(c.spent), 0), 4000000000000000000)::bigint,
         least(max(c.credited), greatest(sum(c.spent), 0))::bigint, max(c.refused), max(c.alerted), max(c.exhausted_at)
  FROM charge c
  JOIN limit_rule r ON r.id = c.rule_id
  JOIN period p ON p.period = r.period AND p.time_zone = r.time_zone
  WHERE c.subject IS NOT NULL AND c.spent IS NOT NULL
  GROUP BY c.rule_id, c.subject, p.starts
  ON CONFLICT (rule_id, subject, window_start)
  DO UPDATE SET spent = EXCLUDED.spent, credited = EXCLUDED.credited, refused = EXCLUDED.refused,
                alerted = EXCLUDED.alerted, exhausted_at = EXCLUDED.exhausted_at`;

const SET = 'UPDATE limit_rule SET time_zone = $1, version = version + 1 WHERE time_zone <> $1';

/**
 * Moves all budgets to a time zone, with what was spent.
 *
 * @returns the time zones that they had; none if there is nothing to change
 */
export function moveToTimeZone(dataSource: DataSource, timeZone: string): Promise<string[]> {
  return dataSource.transaction(async (manager) => {
    const others = () => manager.query<{ time_zone: string }[]>(OTHERS, [timeZone]);
    if ((await others()).length === 0) return [];
    await manager.query(LOCK);
    const zones = (await others()).map(({ time_zone }) => time_zone);
    // Another replica was faster.
    if (zones.length === 0) return [];
    await manager.query('SELECT limit_fold()');
    await manager.query(CARRY_OVER, [timeZone]);
    await manager.query(SET, [timeZone]);
    return zones;
  });
}

/** Which calls an owner has. */
const CALLS: Record<LimitOwner, string> = {
  key: 'l.key_id = $2::uuid',
  team: 'l.team_id = $2::uuid',
  group: 'l.team_id IN (SELECT id FROM team WHERE group_id = $2::uuid)',
  installation: '$2::uuid IS NOT NULL',
};

/** What a call counts in a budget `r`: its charge, or its cost where it has none. */
const USED = `
  CASE r.resource WHEN 'usd' THEN COALESCE(l.charge_usd, l.cost_usd, l.cost_low_usd) * 1000000000
                  ELSE COALESCE(l.charge_tokens, l.prompt_tokens::bigint + COALESCE(l.completion_tokens, 0)) END`;

/** Whether a budget `r` counts a call: as in rule-set.ts of limits. */
const IS_COUNTED = `
  (r.providers IS NULL OR l.provider = ANY (r.providers))
  AND (r.models IS NULL OR l.model IS NULL OR l.model ILIKE ANY (
    SELECT replace(replace(replace(replace(one, '\\', '\\\\'), '%', '\\%'), '_', '\\_'), '*', '%') FROM unnest(r.models) one))`;

/**
 * Adds what was used in the present period to new budgets of days, weeks and months. Whose end users and sessions used it is
 * not known by the hash that meters have.
 */
const countUsed = (owner: LimitOwner) => `
  INSERT INTO limit_meter (rule_id, subject, window_start, spent)
  SELECT r.id, '', w.starts, LEAST(sum(${USED}), 4000000000000000000)::bigint
  FROM limit_rule r
  CROSS JOIN LATERAL limit_window(r.period, r.time_zone, statement_timestamp()) w
  JOIN request_log l ON l.started_at >= w.begins AND l.started_at < w.ends AND ${CALLS[owner]} AND ${IS_COUNTED}
  WHERE r.id = ANY ($1::uuid[])
  GROUP BY r.id, w.starts
  HAVING sum(${USED}) > 0`;

const COUNTABLE = `
  SELECT id FROM limit_rule
  WHERE id = ANY ($1::uuid[]) AND period IN ('day', 'week', 'month') AND scope !~ '_(end_user|session)$'`;

/**
 * Counts what was used since their period began in budgets that were just made.
 *
 * @param rules their IDs
 * @throws ServiceError invalid if that takes too long
 */
export async function countWhatWasUsed(
  manager: EntityManager,
  { owner, ownerId }: { owner: LimitOwner; ownerId: string },
  rules: readonly string[],
): Promise<void> {
  const countable = await manager.query<{ id: string }[]>(COUNTABLE, [rules]);
  if (countable.length === 0) return;
  try {
    await manager.query(countUsed(owner), [countable.map(({ id }) => id), ownerId]);
  } catch (error) {
    if ((error as { code?: string }).code !== '57014') throw error;
    throw ServiceError.of(
      'invalid',
      'budgets',
      'counting what was used in the present period takes too long; give "count_from": "now"',
    );
  }
}

/** Budgets that are not stored are tried on the calls of so many days. */
const TRIED_DAYS = 7;

const wouldReject = (owner: LimitOwner) => `
  SELECT n, count(*) FILTER (WHERE is_recent)::int AS calls,
         count(*) FILTER (WHERE is_recent AND total > amount)::int AS rejected
  FROM (
    SELECT r.n, r.amount, l.started_at >= now() - interval '${TRIED_DAYS} days' AS is_recent,
           sum(${USED}) OVER (PARTITION BY r.n, date_trunc(NULLIF(r.period, 'total'), l.started_at, $3)
                              ORDER BY l.started_at, l.id) AS total
    FROM jsonb_to_recordset($1) AS r (n int, resource text, period text, amount bigint, providers text[], models text[])
    JOIN request_log l ON ${CALLS[owner]} AND ${IS_COUNTED} AND l.started_at >= COALESCE(
      date_trunc(NULLIF(r.period, 'total'), now() - interval '${TRIED_DAYS} days', $3), now() - interval '${TRIED_DAYS} days')
  ) tried GROUP BY n`;

/**
 * How many calls of the last days budgets would have counted, and how many of those found too little left: all after the
 * first that did, though a smaller one may still have been admitted.
 *
 * @param budgets in days, weeks, months or in total, of the calls of the owner together
 */
export async function tryOnLog(
  manager: EntityManager,
  { owner, ownerId }: { owner: LimitOwner; ownerId: string },
  budgets: readonly object[],
  timeZone: string,
): Promise<{ calls: number; rejected: number }[]> {
  const rules = JSON.stringify(budgets.map((budget, n) => ({ n, ...budget })));
  const rows = await manager.query<{ n: number; calls: number; rejected: number }[]>(wouldReject(owner), [
    rules,
    ownerId,
    timeZone,
  ]);
  return budgets.map((_, i) => {
    const { calls = 0, rejected = 0 } = rows.find(({ n }) => n === i) ?? {};
    return { calls, rejected };
  });
}
