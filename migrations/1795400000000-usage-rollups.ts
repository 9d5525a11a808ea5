import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Half-hourly sums of the request log. Rows that exist already are added in the background after the start. */
export class UsageRollups1795400000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE usage_slot (
        slot timestamptz NOT NULL,
        team_id uuid NOT NULL,
        key_id uuid NOT NULL,
        provider text NOT NULL,
        model text,
        calls bigint NOT NULL,
        errors bigint NOT NULL,
        calls_without_tokens bigint NOT NULL,
        unpriced_calls bigint NOT NULL,
        prompt_tokens bigint,
        completion_tokens bigint,
        cached_tokens bigint,
        cache_write_tokens bigint,
        reasoning_tokens bigint,
        cost_usd numeric,
        request_bytes bigint,
        response_bytes bigint,
        duration_ms double precision,
        latency bigint[] NOT NULL,
        UNIQUE NULLS NOT DISTINCT (slot, key_id, provider, model)
      );
      CREATE TABLE usage_rollup (
        is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
        "cursor" timestamptz NOT NULL
      );
      INSERT INTO usage_rollup ("cursor") VALUES ('epoch');
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE usage_rollup, usage_slot');
  }
}
