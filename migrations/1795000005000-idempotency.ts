import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Which calls were made under an `Idempotency-Key`, and what they were answered. */
export class Idempotency1795000005000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE idempotency_record (
        id bytea CONSTRAINT idempotency_record_pkey PRIMARY KEY,
        key_id uuid NOT NULL,
        call_id uuid NOT NULL,
        answer bytea,
        stored_bytes int NOT NULL DEFAULT 0,
        lease_until timestamptz NOT NULL,
        expires_at timestamptz NOT NULL
      );
      CREATE INDEX idempotency_record_expires_at_idx ON idempotency_record (expires_at);
      -- Sums per key are read off the index alone.
      CREATE INDEX idempotency_record_key_id_idx ON idempotency_record (key_id, stored_bytes);
      -- Sealed bytes cannot be compressed.
      ALTER TABLE idempotency_record ALTER COLUMN answer SET STORAGE EXTERNAL;
      -- The table lives on churn: a day's answers come and go.
      ALTER TABLE idempotency_record SET (autovacuum_vacuum_scale_factor = 0.05);
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE idempotency_record');
  }
}
