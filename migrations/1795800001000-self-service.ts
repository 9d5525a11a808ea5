import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What members of a team may do for themselves, and whose a key is. */
export class SelfService1795800001000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE team ADD self_service jsonb;
      ALTER TABLE gateway_key ADD owner text;
      CREATE INDEX gateway_key_owner_idx ON gateway_key (owner) WHERE owner IS NOT NULL;

      COMMENT ON COLUMN team.self_service IS 'Keys that members may create for themselves; null for none.';
      COMMENT ON COLUMN gateway_key.owner IS 'Member of the team who created it for themselves; null for other keys.';
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE gateway_key DROP owner; ALTER TABLE team DROP self_service;');
  }
}
