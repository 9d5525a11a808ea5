import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Sinks: systems beyond Postgres that get every row of the request log. */
export class Sinks1797300010000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE sink (
        id uuid CONSTRAINT sink_pkey PRIMARY KEY,
        name text NOT NULL CONSTRAINT sink_name_key UNIQUE,
        kind text NOT NULL CONSTRAINT sink_kind_check CHECK (kind IN ('clickhouse', 'jetstream', 'http')),
        -- Without what may be secret in it. The whole URL is part of "sealed".
        shown_url text NOT NULL,
        -- Table or subject.
        target text,
        sealed bytea NOT NULL,
        enabled boolean NOT NULL DEFAULT true,
        -- The sink has every row up to this place, in the order (recorded_at, id).
        recorded_until timestamptz NOT NULL,
        recorded_until_id uuid NOT NULL,
        -- The batch that is being sent: its last row, its token, the last row of each message, and when it was begun.
        batch_until timestamptz,
        batch_until_id uuid,
        batch_token uuid,
        batch_ends jsonb,
        batch_at timestamptz,
        rows_sent bigint NOT NULL DEFAULT 0,
        sent_at timestamptz,
        failing_since timestamptz,
        last_error text,
        last_error_at timestamptz,
        version int NOT NULL DEFAULT 1,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT sink_batch_check CHECK (num_nulls(batch_until, batch_until_id, batch_token, batch_ends, batch_at) IN (0, 5))
      );
      COMMENT ON TABLE sink IS 'Where the rows of the request log are sent, and how far each of these systems is.';
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE sink');
  }
}
