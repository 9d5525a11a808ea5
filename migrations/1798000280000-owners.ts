import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Owner of teams and keys, beside the member who created a key. Replicas of the version before neither read nor write it. */
export class Owners1798000280000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    // In the order of key look-ups: a look-up that waits for the second must not hold the first.
    for (const table of ['gateway_key', 'team'])
      await queryRunner.query(`
        ALTER TABLE ${table} ADD owned_by text;
        COMMENT ON COLUMN ${table}.owned_by IS 'Who owns it: a person or a group.';
        COMMENT ON COLUMN ${table}.contact IS 'Whom to ask: a person or a channel.';
      `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    for (const table of ['gateway_key', 'team'])
      await queryRunner.query(`
        ALTER TABLE ${table} DROP owned_by;
        COMMENT ON COLUMN ${table}.contact IS 'Who is responsible: a person or a channel.';
      `);
  }
}
