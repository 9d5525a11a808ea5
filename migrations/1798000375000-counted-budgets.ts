import type { MigrationInterface, QueryRunner } from 'typeorm';

/** When a budget counted what was used before it was made: a change of the time zone counts or leaves out the same calls. */
export class CountedBudgets1798000375000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE limit_rule ADD COLUMN counted_at timestamptz;
      COMMENT ON COLUMN limit_rule.counted_at IS 'When it counted what was used since its period began: calls that do not name it. Null: it began at 0.';`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE limit_rule DROP COLUMN counted_at`);
  }
}
