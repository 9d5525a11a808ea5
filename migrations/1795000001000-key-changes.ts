import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Lets every replica learn of a changed key: a counter that only grows (polled, so that nothing can hide a change) and a
 * notification that carries the counter and the id of the key or team (fast, where it arrives).
 */
export class KeyChanges1795000001000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE change_counter (
        name text CONSTRAINT change_counter_pkey PRIMARY KEY,
        value bigint NOT NULL
      );
      INSERT INTO change_counter (name, value) VALUES ('keys', 0);

      -- The counter's row is locked to the end of the transaction: changes are counted in the order of their commits.
      CREATE FUNCTION count_key_change() RETURNS trigger LANGUAGE plpgsql AS $$
      DECLARE
        changed jsonb := to_jsonb(COALESCE(NEW, OLD));
        counted bigint;
      BEGIN
        UPDATE change_counter SET value = value + 1 WHERE name = 'keys' RETURNING value INTO counted;
        PERFORM pg_notify('postern_keys', counted || ' ' || COALESCE(changed->>'key_id', changed->>'id'));
        RETURN NULL;
      END $$;

      CREATE TRIGGER team_changed AFTER UPDATE OF disabled OR DELETE ON team
        FOR EACH ROW EXECUTE FUNCTION count_key_change();
      CREATE TRIGGER gateway_key_changed
        AFTER UPDATE OF expires_at, revoked_at, disabled, providers, endpoints, idempotency, team_id OR DELETE
        ON gateway_key FOR EACH ROW EXECUTE FUNCTION count_key_change();
      -- Not on last_used_at: that is written all the time and changes no verdict.
      CREATE TRIGGER gateway_key_secret_changed AFTER INSERT OR UPDATE OF expires_at, digest, key_id OR DELETE
        ON gateway_key_secret FOR EACH ROW EXECUTE FUNCTION count_key_change();
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP TRIGGER team_changed ON team;
      DROP TRIGGER gateway_key_changed ON gateway_key;
      DROP TRIGGER gateway_key_secret_changed ON gateway_key_secret;
      DROP FUNCTION count_key_change();
      DROP TABLE change_counter;
    `);
  }
}
