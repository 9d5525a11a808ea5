import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Limits and budgets of teams, keys and end users, and what was used of them. */
export class Limits1795600000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE limit_rule (
        id uuid CONSTRAINT limit_rule_pkey PRIMARY KEY,
        -- team_end_user and key_end_user: each end user of the team or key has the amount for itself.
        scope text NOT NULL CONSTRAINT limit_rule_scope_check
          CHECK (scope IN ('team', 'key', 'team_end_user', 'key_end_user')),
        scope_id uuid NOT NULL,
        resource text NOT NULL,
        period text NOT NULL,
        -- Requests, tokens, calls, or billionths of a US dollar.
        amount bigint NOT NULL CONSTRAINT limit_rule_amount_check
          CHECK (amount >= 0 AND amount <= 1000000000000000000),
        mode text NOT NULL DEFAULT 'block' CONSTRAINT limit_rule_mode_check CHECK (mode IN ('block', 'warn')),
        alert_at smallint[] NOT NULL DEFAULT '{}',
        -- Of budgets in USD: what happens to calls of models without a price.
        unpriced text NOT NULL DEFAULT 'reject' CONSTRAINT limit_rule_unpriced_check CHECK (unpriced IN ('reject', 'allow')),
        -- Of budgets: whether a call reserves what such calls usually cost, or the most that it can cost.
        reservation text NOT NULL DEFAULT 'typical' CONSTRAINT limit_rule_reservation_check
          CHECK (reservation IN ('typical', 'worst')),
        -- BUDGET_TIMEZONE. Here, so that every process and the log writer's statement agree on when a period begins.
        -- The check rejects a name that Postgres does not know, with which no row could be charged.
        time_zone text NOT NULL DEFAULT 'UTC' CONSTRAINT limit_rule_time_zone_check
          CHECK (date_trunc('day', to_timestamp(0), time_zone) IS NOT NULL),
        version int NOT NULL DEFAULT 1,
        CONSTRAINT limit_rule_kind_check CHECK (
          (resource IN ('requests', 'tokens') AND period = 'minute')
          OR (resource = 'concurrent_requests' AND period = 'at_once')
          OR (resource IN ('usd', 'tokens') AND period IN ('day', 'week', 'month', 'total'))),
        -- The owner first: the log writer and the admin API look for the rules of a team or key.
        CONSTRAINT limit_rule_key UNIQUE (scope_id, scope, resource, period)
      );
      INSERT INTO change_counter (name, value) VALUES ('limits', 0);
      CREATE TRIGGER limit_rule_changed AFTER INSERT OR UPDATE OR DELETE ON limit_rule
        FOR EACH ROW EXECUTE FUNCTION count_change('limits');

      -- No foreign keys: the log writer adds to a meter, and no rule that goes away may make it fail. The row is also the
      -- lock under which the holds and slots of a meter change.
      CREATE TABLE limit_meter (
        rule_id uuid,
        -- The keyed hash of an end user; empty for a rule of a team or key itself.
        subject text DEFAULT '',
        window_start timestamptz,
        -- The sum of the charges in request_log; only the statement that inserts their rows adds to it.
        spent bigint NOT NULL DEFAULT 0,
        -- The sum of the holds of this meter.
        held bigint NOT NULL DEFAULT 0,
        credited bigint NOT NULL DEFAULT 0,
        refused bigint NOT NULL DEFAULT 0,
        alerted smallint NOT NULL DEFAULT 0,
        CONSTRAINT limit_meter_pkey PRIMARY KEY (rule_id, subject, window_start)
      );

      -- What a process holds of a meter: what its calls have reserved or used that is not in "spent" yet, and what is
      -- free for its next calls.
      CREATE TABLE limit_hold (
        rule_id uuid,
        subject text,
        window_start timestamptz,
        process uuid,
        amount bigint NOT NULL,
        CONSTRAINT limit_hold_pkey PRIMARY KEY (rule_id, subject, window_start, process)
      );
      CREATE INDEX limit_hold_process_idx ON limit_hold (process);

      -- One row per process that has exchanged: "seq" of its last message, and when that was, which renews its holds.
      CREATE TABLE limit_process (
        id uuid CONSTRAINT limit_process_pkey PRIMARY KEY,
        seq bigint NOT NULL,
        seen_at timestamptz NOT NULL
      );

      -- How much of a rate was handed out in each slot of 5 seconds.
      CREATE TABLE limit_slot (
        rule_id uuid,
        subject text,
        slot bigint,
        used bigint NOT NULL,
        CONSTRAINT limit_slot_pkey PRIMARY KEY (rule_id, subject, slot)
      );
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP TABLE limit_slot, limit_process, limit_hold, limit_meter, limit_rule;
      DELETE FROM change_counter WHERE name = 'limits';
    `);
  }
}
