import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What each process has written, so that a database that has lost some of it is noticed. */
export class DatabaseRegressions1798000480000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE gateway_run (
        run uuid CONSTRAINT gateway_run_pkey PRIMARY KEY,
        seq bigint NOT NULL,
        at timestamptz NOT NULL,
        server timestamptz
      ) WITH (fillfactor = 50);
      COMMENT ON TABLE gateway_run IS 'What each process run of the gateway has written last.';
      COMMENT ON COLUMN gateway_run.seq IS
        'Counts its batches of rows and its polls; one that is lower than what the process knows shows that Postgres has lost transactions.';
      COMMENT ON COLUMN gateway_run.at IS 'When it was counted last.';
      COMMENT ON COLUMN gateway_run.server IS
        'Start of the Postgres server for which the process has put back what that server had lost; null: it has ended, or did not respond.';

      CREATE TABLE database_regression (
        id uuid CONSTRAINT database_regression_pkey PRIMARY KEY,
        server timestamptz NOT NULL CONSTRAINT database_regression_server_key UNIQUE,
        noticed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        lost_from timestamptz,
        gap_seconds int,
        state text NOT NULL CONSTRAINT database_regression_state_check
          CHECK (state IN ('put_back', 'waiting', 'dismissed', 'another_database')),
        runs jsonb NOT NULL DEFAULT '{}',
        rows_put_back bigint NOT NULL DEFAULT 0,
        rows_skipped bigint NOT NULL DEFAULT 0,
        claims_put_back bigint NOT NULL DEFAULT 0,
        ends_put_back bigint NOT NULL DEFAULT 0,
        lost_entries jsonb NOT NULL DEFAULT '[]',
        updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
      );
      COMMENT ON TABLE database_regression IS
        'Losses of transactions that Postgres had acknowledged: a failover to an asynchronous standby, or a restored backup.';
      COMMENT ON COLUMN database_regression.server IS 'Start of the Postgres server on which it was noticed.';
      COMMENT ON COLUMN database_regression.lost_from IS
        'What was written from then on may be lost; null: unknown, or nothing of the processes is there.';
      COMMENT ON COLUMN database_regression.gap_seconds IS 'How long the lost time is.';
      COMMENT ON COLUMN database_regression.state IS
        'put_back: the processes put back what they have; waiting: an administrator decides; dismissed: nothing is put back; another_database: nothing of the processes is there, and nothing is put back.';
      COMMENT ON COLUMN database_regression.runs IS
        'For each process run: what is there of what it has written (surviving), and what Postgres had acknowledged.';
      COMMENT ON COLUMN database_regression.rows_skipped IS 'Rows of days that retention has removed.';
      COMMENT ON COLUMN database_regression.claims_put_back IS 'Idempotency-Keys that were put back.';
      COMMENT ON COLUMN database_regression.ends_put_back IS
        'Revocations and other ends of keys, secrets, tokens, sessions and people that were put back.';
      COMMENT ON COLUMN database_regression.lost_entries IS
        'Entries of the audit log that were lost and are not applied again.';
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE database_regression; DROP TABLE gateway_run');
  }
}
