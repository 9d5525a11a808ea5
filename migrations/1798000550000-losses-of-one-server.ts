import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Several losses on one server; polls of processes that do not read runs that have ended; times of entries in their order. */
export class LossesOfOneServer1798000550000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE database_regression
        ADD COLUMN number int NOT NULL DEFAULT 1,
        DROP CONSTRAINT database_regression_server_key,
        ADD CONSTRAINT database_regression_server_key UNIQUE (server, number);
      COMMENT ON COLUMN database_regression.number IS 'Counts the losses that were noticed on this server.';
      CREATE INDEX gateway_run_running_idx ON gateway_run (run) WHERE server IS NOT NULL;
      ALTER TABLE audit_log ALTER COLUMN at SET DEFAULT clock_timestamp();
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE audit_log ALTER COLUMN at SET DEFAULT now();
      DROP INDEX gateway_run_running_idx;
      DELETE FROM database_regression WHERE number > 1;
      ALTER TABLE database_regression DROP COLUMN number,
        ADD CONSTRAINT database_regression_server_key UNIQUE (server);
    `);
  }
}
