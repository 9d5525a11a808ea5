import type { MigrationInterface, QueryRunner } from 'typeorm';
import { replaceInFunctions } from './replace-in-functions.js';

const ALERT = ['limit_meter_alert()'];
const RESETS_AT = [
  `CASE WHEN v_rule.period <> 'total' THEN extract(epoch FROM (NEW.window_start AT TIME ZONE
                v_rule.time_zone + ('1 ' || v_rule.period)::interval) AT TIME ZONE v_rule.time_zone) * 1000 END`,
  `CASE WHEN v_rule.period <> 'total' THEN extract(epoch FROM
                (limit_window(v_rule.period, v_rule.time_zone, NEW.window_start)).ends) * 1000 END`,
] as const;

/**
 * Days, weeks and months of budgets as the log writer's settlement computes them, also where clocks change at midnight:
 * there, the midnight after which a period is named is not where it begins, or its last hour is not an hour before the end.
 */
export class LimitWindows1798000030000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      -- The period that holds a time. "starts" names it: what date_trunc() says of each of its times, as in the settlement.
      -- It lasts from "begins" to "ends": the nearest quarters of an hour before and after which date_trunc() says something
      -- else. They are looked for 3 hours around the midnights, because clocks change by less.
      CREATE FUNCTION limit_window(p_period text, p_zone text, p_at timestamptz,
                                   OUT starts timestamptz, OUT begins timestamptz, OUT ends timestamptz)
      LANGUAGE sql STABLE AS $$
        SELECT asked.starts,
               max(q) FILTER (WHERE q <= p_at AND date_trunc(p_period, q - interval '15 minutes', p_zone) <> asked.starts),
               min(q) FILTER (WHERE q > p_at AND date_trunc(p_period, q, p_zone) <> asked.starts)
        FROM (SELECT date_trunc(p_period, date_bin('15 minutes', p_at, to_timestamp(0)), p_zone) AS starts,
                     date_trunc(p_period, p_at AT TIME ZONE p_zone) AS midnight) asked
        CROSS JOIN (VALUES (0), (1)) edge (n)
        CROSS JOIN LATERAL (
          SELECT date_bin('15 minutes', (midnight + n * ('1 ' || p_period)::interval) AT TIME ZONE p_zone, to_timestamp(0)) AS at
        ) near
        CROSS JOIN LATERAL generate_series(near.at - interval '3 hours', near.at + interval '3 hours', '15 minutes') q
        GROUP BY asked.starts
      $$;

      -- For [period, time zone, time in ms]: what names the period that holds the time, its end, and its begin, in ms.
      -- Processes of the version before take the first for the begin.
      CREATE OR REPLACE FUNCTION limit_windows(p_asked jsonb) RETURNS SETOF jsonb LANGUAGE sql AS $$
        SELECT jsonb_build_array(a->>0, a->>1, extract(epoch FROM starts) * 1000, extract(epoch FROM ends) * 1000,
                                 extract(epoch FROM begins) * 1000)
        FROM jsonb_array_elements(p_asked) a
        CROSS JOIN LATERAL limit_window(a->>0, a->>1, to_timestamp((a->>2)::numeric / 1000))
      $$;
    `);
    await replaceInFunctions(queryRunner, ALERT, ...RESETS_AT);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    const [before, after] = RESETS_AT;
    await replaceInFunctions(queryRunner, ALERT, after, before);
    await queryRunner.query(`
      CREATE OR REPLACE FUNCTION limit_windows(p_asked jsonb) RETURNS SETOF jsonb LANGUAGE sql AS $$
        SELECT jsonb_build_array(period, zone, extract(epoch FROM starts) * 1000,
                                 extract(epoch FROM (starts AT TIME ZONE zone + ('1 ' || period)::interval) AT TIME ZONE zone) * 1000)
        FROM (SELECT a->>0 AS period, a->>1 AS zone,
                     date_trunc(a->>0, to_timestamp((a->>2)::numeric / 1000), a->>1) AS starts
              FROM jsonb_array_elements(p_asked) a) asked
      $$;
      DROP FUNCTION limit_window(text, text, timestamptz);
    `);
  }
}
