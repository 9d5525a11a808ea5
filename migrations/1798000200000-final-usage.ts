import type { MigrationInterface, QueryRunner } from 'typeorm';
import { commentOnRequestLog } from './comments.js';

/** Whether all usage of a call was read, and between which costs a call lies of which it was not. Instant on any log. */
export class FinalUsage1798000200000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE request_log
        ADD COLUMN usage_final boolean,
        ADD COLUMN cost_low_usd numeric(18,9),
        ADD COLUMN cost_high_usd numeric(18,9),
        ADD COLUMN output_limit bigint`);
    await commentOnRequestLog(queryRunner);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE request_log
        DROP COLUMN usage_final, DROP COLUMN cost_low_usd, DROP COLUMN cost_high_usd, DROP COLUMN output_limit`);
  }
}
