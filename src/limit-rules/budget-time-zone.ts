import type { DataSource } from 'typeorm';

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
    SELECT period, time_zone, last, key_id, team_id, limit_subject,
           sum(sign * charge_usd) * 1000000000 AS usd, sum(sign * charge_tokens) AS tokens
    FROM period JOIN request_log ON started_at >= first AND started_at < last
    WHERE charge_usd IS NOT NULL OR charge_tokens IS NOT NULL
    GROUP BY period, time_zone, last, key_id, team_id, limit_subject),
  charge AS (
    SELECT r.id AS rule_id, CASE WHEN r.scope = o.scope THEN '' ELSE d.limit_subject END AS subject,
           CASE r.resource WHEN 'usd' THEN d.usd ELSE d.tokens END AS spent,
           0 AS credited, 0 AS refused, 0 AS alerted, NULL::timestamptz AS exhausted_at
    FROM differing d
    CROSS JOIN LATERAL (VALUES (d.key_id, 'key'), (d.team_id, 'team')) o (id, scope)
    JOIN limit_rule r ON r.scope_id = o.id AND r.scope IN (o.scope, o.scope || '_end_user')
      AND r.period = d.period AND r.time_zone = d.time_zone
    -- Its ID is a UUIDv7, which begins with the milliseconds of its creation.
    WHERE to_timestamp(('x' || left(replace(r.id::text, '-', ''), 12))::bit(48)::bigint / 1000.0) < d.last
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
