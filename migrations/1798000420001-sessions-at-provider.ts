import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Sessions of the console end with that at the OpenID provider. Those that replicas of the version before begin have none, and
 * end by their user.
 */
export class SessionsAtProvider1798000420001 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE admin_session ADD COLUMN idp_sid text;
      CREATE INDEX admin_session_idp_sid_idx ON admin_session (idp_sid) WHERE idp_sid IS NOT NULL;
      COMMENT ON COLUMN admin_session.idp_sid IS 'Session at the OpenID provider that it began in; null if the provider names none.';
      CREATE INDEX sign_in_idp_sid_idx ON sign_in (idp_sid) WHERE idp_sid IS NOT NULL;
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP INDEX sign_in_idp_sid_idx;
      ALTER TABLE admin_session DROP COLUMN idp_sid;
    `);
  }
}
