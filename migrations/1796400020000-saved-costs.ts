import type { MigrationInterface, QueryRunner } from 'typeorm';
import { commentOnRequestLog } from './comments.js';

/** What calls from the response cache would have cost. Nothing is rewritten: instant on any log. */
export class SavedCosts1796400020000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE request_log ADD COLUMN saved_usd numeric(18,9);
      ALTER TABLE usage_slot ADD COLUMN saved_usd numeric;
      ALTER TABLE usage_day ADD COLUMN saved_usd numeric;
    `);
    for (const name of ['usage_slot', 'usage_day'])
      await queryRunner.query(
        `COMMENT ON COLUMN ${name}.saved_usd IS
           'Exact sum in USD of what calls from the response cache would have cost; null if it is known of no call.'`,
      );
    await commentOnRequestLog(queryRunner);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE usage_day DROP COLUMN saved_usd;
      ALTER TABLE usage_slot DROP COLUMN saved_usd;
      ALTER TABLE request_log DROP COLUMN saved_usd;
    `);
  }
}
