import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Lets every replica learn of a changed trust. */
export class TrustChanges1798000390001 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      INSERT INTO change_counter (name, value) VALUES ('trusts', 0);
      -- Not on last_used_at: that is written all the time.
      CREATE TRIGGER trust_terms_changed
        AFTER INSERT OR UPDATE OF name, key_id, preset, issuer, audience, jwks, claims, any_ref, cidrs, token_minutes,
          longest_jwt_minutes, max_live, enabled OR DELETE
        ON trust FOR EACH ROW EXECUTE FUNCTION count_change('trusts');
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP TRIGGER trust_terms_changed ON trust;
      DELETE FROM change_counter WHERE name = 'trusts';
    `);
  }
}
