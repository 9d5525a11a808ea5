import type { MigrationInterface, QueryRunner } from 'typeorm';

const TABLES = ['admin_token', 'admin_session'];

/** The role lead. Replicas of the version before know no handler that it may use, so they reject it. */
export class Leads1798000150001 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE admin_token DROP CONSTRAINT admin_token_role_check, ADD CONSTRAINT admin_token_role_check
        CHECK (role IN ('admin', 'viewer', 'lead', 'team', 'metrics'));
      ALTER TABLE admin_session DROP CONSTRAINT admin_session_role_check, ADD CONSTRAINT admin_session_role_check
        CHECK (role IN ('admin', 'viewer', 'lead', 'team'));
    `);
    for (const table of TABLES)
      await queryRunner.query(`
        ALTER TABLE ${table} DROP CONSTRAINT ${table}_teams_check, ADD CONSTRAINT ${table}_teams_check
          CHECK ((role IN ('lead', 'team')) = (teams IS NOT NULL));
        COMMENT ON COLUMN ${table}.teams IS 'IDs of the teams of the roles lead and team; else null.';
      `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    // Who leads a team would be left with a role that is not known.
    for (const table of TABLES)
      await queryRunner.query(`
        DELETE FROM ${table} WHERE role = 'lead';
        ALTER TABLE ${table} DROP CONSTRAINT ${table}_teams_check, ADD CONSTRAINT ${table}_teams_check
          CHECK ((role = 'team') = (teams IS NOT NULL));
        COMMENT ON COLUMN ${table}.teams IS 'IDs of the teams that a ${table === 'admin_token' ? 'token' : 'session'} of the role team may see; else null.';
      `);
    await queryRunner.query(`
      ALTER TABLE admin_token DROP CONSTRAINT admin_token_role_check, ADD CONSTRAINT admin_token_role_check
        CHECK (role IN ('admin', 'viewer', 'team', 'metrics'));
      ALTER TABLE admin_session DROP CONSTRAINT admin_session_role_check, ADD CONSTRAINT admin_session_role_check
        CHECK (role IN ('admin', 'viewer', 'team'));
    `);
  }
}
