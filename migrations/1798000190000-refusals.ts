import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Requests that the gateway rejected, counted by minute. */
export class Refusals1798000190000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      -- Random, up to 2^62: after a failover, a sequence hands numbers out again.
      ALTER TABLE limit_rule
        ADD COLUMN nr bigint NOT NULL DEFAULT (random() * '4.611686018427388e+18')
        CONSTRAINT limit_rule_nr_key UNIQUE;
      COMMENT ON COLUMN limit_rule.nr IS 'A short name of the rule, which rows that name many rules store.';

      CREATE TABLE refusal (
        minute timestamptz NOT NULL,
        team_id uuid NOT NULL,
        key_id uuid NOT NULL,
        code text NOT NULL,
        rule_nr bigint NOT NULL DEFAULT 0,
        provider text NOT NULL DEFAULT '',
        model text NOT NULL DEFAULT '',
        calls bigint NOT NULL,
        last_id uuid NOT NULL,
        last_at timestamptz NOT NULL,
        CONSTRAINT refusal_pkey PRIMARY KEY (minute, team_id, key_id, code, rule_nr, provider, model)
      );
      COMMENT ON TABLE refusal IS 'Requests that the gateway rejected, counted by minute, and after 2 days by hour.';
      COMMENT ON COLUMN refusal.key_id IS 'Zeros: no valid key was sent. ffffffff-…: keys beyond the number that is counted.';
      COMMENT ON COLUMN refusal.rule_nr IS 'The limit or budget that rejected it (limit_rule.nr); 0: none.';
      COMMENT ON COLUMN refusal.last_id IS 'The ID of the last of them, as the client got it.';

      CREATE TABLE refusal_writer (
        process uuid CONSTRAINT refusal_writer_pkey PRIMARY KEY,
        seq bigint NOT NULL,
        written_at timestamptz NOT NULL DEFAULT now()
      );
      COMMENT ON TABLE refusal_writer IS 'The last counts that each process has written, so that none is added twice.';

      CREATE VIEW refusals_by_key_day AS
        SELECT (r.minute AT TIME ZONE 'UTC')::date AS day, t.name AS team, k.name AS key, r.code,
               sum(r.calls)::bigint AS calls, max(r.last_at) AS last_at
        FROM refusal r LEFT JOIN team t ON t.id = r.team_id LEFT JOIN gateway_key k ON k.id = r.key_id
        GROUP BY 1, 2, 3, 4;
      CREATE VIEW refusals_by_limit_hour AS
        SELECT date_trunc('hour', r.minute, 'UTC') AS hour, l.scope, l.resource, l.period,
               t.name AS team, k.name AS key, sum(r.calls)::bigint AS calls, max(r.last_at) AS last_at
        FROM refusal r
        JOIN limit_rule l ON l.nr = r.rule_nr
        LEFT JOIN gateway_key k ON k.id = l.scope_id
        LEFT JOIN team t ON t.id = COALESCE(k.team_id, l.scope_id)
        GROUP BY 1, 2, 3, 4, 5, 6;
      COMMENT ON VIEW refusals_by_key_day IS 'Rejected requests by UTC day, key and reason.';
      COMMENT ON VIEW refusals_by_limit_hour IS 'Requests rejected by limits and budgets, by hour and limit.';
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP VIEW refusals_by_limit_hour, refusals_by_key_day;
      DROP TABLE refusal_writer, refusal;
      ALTER TABLE limit_rule DROP COLUMN nr;
    `);
  }
}
