import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Providers that fail, so that one process can announce each change once. */
export class FailingProviders1798000140001 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE failing_provider (
        provider text CONSTRAINT failing_provider_pkey PRIMARY KEY,
        since timestamptz NOT NULL DEFAULT now(),
        calls int NOT NULL,
        failures int NOT NULL,
        reason text,
        last_call_at timestamptz NOT NULL
      );
      COMMENT ON TABLE failing_provider IS 'Providers that fail most of their calls now; others have no row.';
      COMMENT ON COLUMN failing_provider.calls IS 'Calls of the last three minutes in which there were any.';
      COMMENT ON COLUMN failing_provider.failures IS 'Those of them that failed.';
      COMMENT ON COLUMN failing_provider.reason IS 'What most of the failures reported.';
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE failing_provider');
  }
}
