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

/** Which calls `l` an owner has. @param id its ID, in SQL */
const CALLS: Record<LimitOwner, (id: string) => string> = {
  key: (id) => `l.key_id = ${id}`,
  team: (id) => `l.team_id = ${id}`,
  group: (id) => `l.team_id IN (SELECT id FROM team WHERE group_id = ${id})`,
  installation: (id) => `${id} IS NOT NULL`,
};

/** What a call counts in a budget `r`: its charge, or its cost where it has none. */
const USED = `
  CASE r.resource WHEN 'usd' THEN COALESCE(l.charge_usd, l.cost_usd, l.cost_low_usd) * 1000000000
                  ELSE COALESCE(l.charge_tokens, l.prompt_tokens::bigint + COALESCE(l.completion_tokens, 0)) END`;

/** Whether the name of a model matches one of these patterns, as in rule-set.ts of limits. Both in SQL. */
export const matchesModels = (name: string, patterns: string) => `
  ${name} ILIKE ANY (
    SELECT replace(replace(replace(replace(one, '\\', '\\\\'), '%', '\\%'), '_', '\\_'), '*', '%') FROM unnest(${patterns}) one)`;

/** Whether a budget `r` counts a call: as in rule-set.ts of limits. */
const IS_COUNTED = `
  (r.providers IS NULL OR l.provider = ANY (r.providers))
  AND (r.models IS NULL OR l.model IS NULL OR ${matchesModels('l.model', 'r.models')})`;

const OTHERS = `
  SELECT DISTINCT time_zone FROM limit_rule WHERE time_zone <> $1 ORDER BY 1`;

/**
 * No charge is settled meanwhile, and one that waits for this settles in the new periods: a statement takes its snapshot
 * after its locks. The rules first, as whoever changes them. Nor is the row of a meter locked: limit_fold() would leave out
 * what was charged in its parts, and the meter of the new period would never get it.
 */
const LOCK = 'LOCK TABLE limit_rule IN SHARE ROW EXCLUSIVE MODE; LOCK TABLE limit_meter IN EXCLUSIVE MODE';

/**
 * What was spent in the present periods of the new time zone: what those of the old one have, with the charges of the hours
 * in which only one of both lies. So it takes only these hours of the log, which may be long, or dropped. A budget that was
 * created after them has no charges from then, but for the calls that it has counted when it was made, which do not name it.
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
      AND (r.nr = ANY (c.charge_rules) OR r.counted_at IS NULL
        AND to_timestamp(('x' || left(replace(r.id::text, '-', ''), 12))::bit(48)::bigint / 1000.0) < c.last)
    UNION ALL
    SELECT r.id, '', p.sign * ${USED}, 0, 0, 0, NULL
    FROM period p
    JOIN limit_rule r ON r.period = p.period AND r.time_zone = p.time_zone AND r.counted_at IS NOT NULL
    JOIN request_log l ON l.started_at >= p.first AND l.started_at < p.last AND ${IS_COUNTED}
      AND (r.nr = ANY (l.charge_rules)) IS NOT TRUE
      AND l.started_at + COALESCE(l.duration_ms, 0) * interval '1 ms' <= r.counted_at
      AND CASE r.scope ${Object.entries(CALLS)
        .map(([owner, calls]) => `WHEN '${owner}' THEN ${calls('COALESCE(r.owner_id, r.scope_id)')}`)
        .join(' ')} END
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

const COUNTABLE = `
  SELECT id FROM limit_rule
  WHERE id = ANY ($1::uuid[]) AND period IN ('day', 'week', 'month') AND scope !~ '_(end_user|session)$'`;

/** A job is settled in the budgets that the row of its call names. Until this is committed, it is not settled. */
const LOCK_JOBS = `
  SELECT FROM provider_job WHERE state <> 'settled' AND started_at >= now() - interval '40 days' ORDER BY id FOR UPDATE`;

/**
 * Budgets that are new are named by the rows of jobs that are not settled, of those periods that they count. Exports get the
 * rows again when they are settled.
 */
const nameInJobs = (owner: LimitOwner) => `
  WITH named AS (
    SELECT l.id, l.started_at, array_agg(r.nr) AS numbers, bool_or(r.resource = 'usd') AS is_usd,
           bool_or(r.resource = 'tokens') AS is_tokens
    FROM limit_rule r
    CROSS JOIN LATERAL limit_window(r.period, r.time_zone, statement_timestamp()) w
    JOIN provider_job j ON j.state <> 'settled' AND j.started_at >= w.begins AND j.started_at < w.ends
    JOIN request_log l ON l.started_at = j.started_at AND l.id = j.id AND ${CALLS[owner]('$2::uuid')} AND ${IS_COUNTED}
    WHERE r.id = ANY ($1::uuid[])
      -- One that versions before have charged is settled in all budgets of its key and team.
      AND (l.charge_rules IS NOT NULL OR (l.charge_usd IS NULL AND l.charge_tokens IS NULL))
    GROUP BY l.id, l.started_at)
  UPDATE request_log AS l
  SET charge_rules = COALESCE(l.charge_rules, '{}') || n.numbers,
      charge_usd = CASE WHEN is_usd THEN COALESCE(l.charge_usd, l.cost_usd, l.cost_low_usd, 0) ELSE l.charge_usd END,
      charge_tokens = CASE WHEN is_tokens
        THEN COALESCE(l.charge_tokens, l.prompt_tokens::bigint + COALESCE(l.completion_tokens, 0), 0) ELSE l.charge_tokens END
  FROM named n WHERE l.started_at = n.started_at AND l.id = n.id`;

/**
 * Adds what was used in the present period to new budgets of days, weeks and months. Whose end users and sessions used it is
 * not known by the hash that meters have.
 */
const countUsed = (owner: LimitOwner) => `
  WITH counted AS (
    UPDATE limit_rule SET counted_at = statement_timestamp() WHERE id = ANY ($1::uuid[]))
  INSERT INTO limit_meter (rule_id, subject, window_start, spent)
  SELECT r.id, '', w.starts, LEAST(sum(${USED}), 4000000000000000000)::bigint
  FROM limit_rule r
  CROSS JOIN LATERAL limit_window(r.period, r.time_zone, statement_timestamp()) w
  JOIN request_log l ON l.started_at >= w.begins AND l.started_at < w.ends AND ${CALLS[owner]('$2::uuid')} AND ${IS_COUNTED}
  WHERE r.id = ANY ($1::uuid[])
  GROUP BY r.id, w.starts
  HAVING sum(${USED}) > 0`;

/**
 * Counts what was used since their period began in budgets that were just made. What a job used that is still open is counted
 * when it is settled.
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
  const values = [countable.map(({ id }) => id), ownerId];
  await unlessTooLong(
    'counting what was used in the present period takes too long; give "count_from": "now"',
    async () => {
      await manager.query(LOCK_JOBS);
      await manager.query(nameInJobs(owner), values);
      await manager.query(countUsed(owner), values);
    },
  );
}

/** SQLSTATE query_canceled: the statement took longer than statement_timeout. */
const CANCELED = '57014';

export function tookTooLong(error: unknown): boolean {
  return (error as { code?: string }).code === CANCELED;
}

/** @throws ServiceError invalid, with the remedy, if a statement is canceled because it takes too long */
async function unlessTooLong<T>(remedy: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!tookTooLong(error)) throw error;
    throw ServiceError.of('invalid', 'budgets', remedy);
  }
}

/** Budgets that are not stored are tried on the calls of so many days. */
const TRIED_DAYS = 7;

/** The attempts of a call are rows of their own. */
const wouldReject = (owner: LimitOwner) => `
  SELECT n, count(*) FILTER (WHERE is_recent)::int AS calls,
         count(*) FILTER (WHERE is_recent AND total > amount)::int AS rejected
  FROM (
    SELECT n, amount, began >= now() - interval '${TRIED_DAYS} days' AS is_recent,
           sum(used) OVER (PARTITION BY n, date_trunc(NULLIF(period, 'total'), began, $3) ORDER BY began, call) AS total
    FROM (
      SELECT r.n, r.amount, r.period, COALESCE(l.call_id, l.id) AS call, min(l.started_at) AS began, sum(${USED}) AS used
      FROM jsonb_to_recordset($1) AS r (n int, resource text, period text, amount bigint, providers text[], models text[])
      JOIN request_log l ON ${CALLS[owner]('$2::uuid')} AND ${IS_COUNTED} AND l.started_at >= COALESCE(
        date_trunc(NULLIF(r.period, 'total'), now() - interval '${TRIED_DAYS} days', $3), now() - interval '${TRIED_DAYS} days')
      GROUP BY r.n, r.amount, r.period, call) calls
  ) tried GROUP BY n`;

/**
 * How many calls of the last days budgets would have counted, and how many of those found too little left: all after the
 * first that did, though a smaller one may still have been admitted.
 *
 * @param budgets in days, weeks, months or in total, of the calls of the owner together
 * @throws ServiceError invalid if that takes too long
 */
export async function tryOnLog(
  manager: EntityManager,
  { owner, ownerId }: { owner: LimitOwner; ownerId: string },
  budgets: readonly object[],
  timeZone: string,
): Promise<{ calls: number; rejected: number }[]> {
  const rules = JSON.stringify(budgets.map((budget, n) => ({ n, ...budget })));
  const rows = await unlessTooLong(
    'trying these budgets on the log takes too long; try fewer at once, a day in place of a month, or a team or key with fewer calls',
    () =>
      manager.query<{ n: number; calls: number; rejected: number }[]>(wouldReject(owner), [
        rules,
        ownerId,
        timeZone,
      ]),
  );
  return budgets.map((_, i) => {
    const { calls = 0, rejected = 0 } = rows.find(({ n }) => n === i) ?? {};
    return { calls, rejected };
  });
}
