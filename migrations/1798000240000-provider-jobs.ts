import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Batches, background responses and videos, whose usage is known later than their call. */
export class ProviderJobs1798000240000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE provider_job (
        id uuid CONSTRAINT provider_job_pkey PRIMARY KEY,
        started_at timestamptz NOT NULL,
        provider text NOT NULL,
        kind text NOT NULL CONSTRAINT provider_job_kind_check CHECK (kind IN ('batch', 'response', 'video')),
        digest bytea NOT NULL,
        sealed_id bytea,
        team_id uuid NOT NULL,
        key_id uuid NOT NULL,
        model text,
        state text NOT NULL DEFAULT 'open'
          CONSTRAINT provider_job_state_check CHECK (state IN ('open', 'settled', 'unknown')),
        problem text,
        next_check_at timestamptz,
        checked_at timestamptz,
        ended_at timestamptz,
        tries int NOT NULL DEFAULT 0,
        duplicates uuid[] NOT NULL DEFAULT '{}',
        CONSTRAINT provider_job_key UNIQUE (provider, kind, digest)
      );
      CREATE INDEX provider_job_next_check_at_idx ON provider_job (next_check_at) WHERE next_check_at IS NOT NULL;
      COMMENT ON TABLE provider_job IS 'Batches, background responses and videos at providers, whose usage is known later than their call.';
      COMMENT ON COLUMN provider_job.id IS 'The row of the call that created it: request_log.id.';
      COMMENT ON COLUMN provider_job.started_at IS 'When that call arrived: request_log.started_at.';
      COMMENT ON COLUMN provider_job.digest IS 'SHA-256 of where the job is at its provider.';
      COMMENT ON COLUMN provider_job.sealed_id IS 'Where the job is at its provider, encrypted with MASTER_KEY; null once it is settled.';
      COMMENT ON COLUMN provider_job.model IS 'The model that the request named; null: none.';
      COMMENT ON COLUMN provider_job.problem IS 'Why the last check did not settle it; null: it goes on.';
      COMMENT ON COLUMN provider_job.ended_at IS 'When it was settled or given up.';
      COMMENT ON COLUMN provider_job.duplicates IS 'Rows of other calls that got the same job. They cost nothing.';
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE provider_job`);
  }
}
