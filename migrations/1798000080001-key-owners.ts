import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Owners of keys by ID, and providers of members' keys. Replicas of the version before go on to match "owner", which stays
 * filled.
 */
export class KeyOwners1798000080001 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE gateway_key ADD owner_id text;
      CREATE TRIGGER team_self_service_changed AFTER UPDATE OF self_service ON team
        FOR EACH ROW WHEN (OLD.self_service IS DISTINCT FROM NEW.self_service)
        EXECUTE FUNCTION count_key_change();

      COMMENT ON COLUMN gateway_key.owner_id IS
        'The owner for good, whatever the name: token:<ID> or sso:<issuer>#<sub>; null for other keys, and those of earlier versions.';
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP TRIGGER team_self_service_changed ON team;
      ALTER TABLE gateway_key DROP owner_id;
    `);
  }
}
