import type { MigrationInterface, QueryRunner } from 'typeorm';
import { commentOnRequestLog } from './comments.js';

/** Prices of units and tiers that the version before would compute wrongly stand in columns that it does not read. */
export class UnitPrices1798000230000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE price ADD COLUMN units jsonb, ADD COLUMN unit_tiers jsonb;
      COMMENT ON COLUMN price.units IS 'Like extra: USD per thousand images, pages, seconds, characters, file searches and code sessions.';
      COMMENT ON COLUMN price.unit_tiers IS 'Like tiers: those with such units, a factor, a size or a quality.';
    `);
    await commentOnRequestLog(queryRunner);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE price DROP COLUMN units, DROP COLUMN unit_tiers');
  }
}
