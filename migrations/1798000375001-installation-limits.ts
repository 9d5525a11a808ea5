import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A version of the limits of the installation, for If-Match. */
export class InstallationLimits1798000375001 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE installation_limits (
        id uuid CONSTRAINT installation_limits_pkey PRIMARY KEY,
        version integer NOT NULL DEFAULT 1
      );
      COMMENT ON TABLE installation_limits IS 'One row: the version of the limits of the installation, which are in limit_rule.';
      COMMENT ON COLUMN installation_limits.version IS 'Increases with every change by an actor.';
      INSERT INTO installation_limits (id) VALUES ('00000000-0000-0000-0000-000000000000');`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE installation_limits`);
  }
}
