import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Contact, cost center and note of teams and keys. Replicas of the version before neither read nor write them. */
export class Annotations1798000150000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    // In the order of key look-ups: a look-up that waits for the second must not hold the first.
    for (const table of ['gateway_key', 'team'])
      await queryRunner.query(`
        ALTER TABLE ${table} ADD contact text, ADD cost_center text, ADD note text;
        COMMENT ON COLUMN ${table}.contact IS 'Who is responsible: a person or a channel.';
        COMMENT ON COLUMN ${table}.cost_center IS 'Who is charged; of a key null for that of its team.';
        COMMENT ON COLUMN ${table}.note IS 'Free text.';
      `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    for (const table of ['gateway_key', 'team'])
      await queryRunner.query(`ALTER TABLE ${table} DROP contact, DROP cost_center, DROP note`);
  }
}
