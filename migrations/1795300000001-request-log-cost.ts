import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What a call cost, by which price, and when a row was last updated. Nullable columns only: instant on any log. */
export class RequestLogCost1795300000001 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE request_log
        ADD COLUMN cost_usd numeric(18,9),
        ADD COLUMN price_id uuid,
        ADD COLUMN repaired_at timestamptz
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      'ALTER TABLE request_log DROP COLUMN cost_usd, DROP COLUMN price_id, DROP COLUMN repaired_at',
    );
  }
}
