import type { MigrationInterface, QueryRunner } from 'typeorm';

/** When a limit last rejected a call, what that call needed, and when it last admitted one: whether it rejects calls now. */
export class LimitRejections1798000160000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE limit_meter
        ADD COLUMN refused_at timestamptz,
        ADD COLUMN refused_needed bigint,
        ADD COLUMN admitted_at timestamptz;
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE limit_meter DROP COLUMN refused_at, DROP COLUMN refused_needed, DROP COLUMN admitted_at;
    `);
  }
}
