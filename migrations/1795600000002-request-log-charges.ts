import type { MigrationInterface, QueryRunner } from 'typeorm';
import { commentOnRequestLog } from './comments.js';

/** What a call was charged against budgets. Nullable columns only: instant on any log. */
export class RequestLogCharges1795600000002 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE request_log
        ADD COLUMN charge_usd numeric(18,9),
        ADD COLUMN charge_tokens bigint,
        ADD COLUMN limit_subject text
    `);
    await commentOnRequestLog(queryRunner);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      'ALTER TABLE request_log DROP COLUMN charge_usd, DROP COLUMN charge_tokens, DROP COLUMN limit_subject',
    );
  }
}
