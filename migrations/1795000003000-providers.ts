import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Stored providers, and a counter with which every replica learns of their changes. */
export class Providers1795000003000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE provider (
        id uuid CONSTRAINT provider_pkey PRIMARY KEY,
        name text NOT NULL CONSTRAINT provider_name_key UNIQUE
          -- The name "default" is the environment's.
          CONSTRAINT provider_name_check CHECK (name ~ '^[a-z0-9][a-z0-9_-]{0,62}$' AND name <> 'default'),
        url text NOT NULL,
        auth text NOT NULL DEFAULT 'bearer'
          CONSTRAINT provider_auth_check CHECK (auth IN ('bearer', 'x-api-key', 'api-key', 'x-goog-api-key')),
        sealed_secret bytea,
        is_default boolean NOT NULL DEFAULT false,
        enabled boolean NOT NULL DEFAULT true,
        version int NOT NULL DEFAULT 1,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE UNIQUE INDEX provider_is_default_key ON provider (is_default) WHERE is_default;

      INSERT INTO change_counter (name, value) VALUES ('providers', 0);

      -- For any table with an id; the trigger's argument is the name of its counter. The counter's row is locked to the
      -- end of the transaction: changes are counted in the order of their commits.
      CREATE FUNCTION count_change() RETURNS trigger LANGUAGE plpgsql AS $$
      DECLARE
        counted bigint;
      BEGIN
        UPDATE change_counter SET value = value + 1 WHERE name = TG_ARGV[0] RETURNING value INTO counted;
        PERFORM pg_notify('postern_' || TG_ARGV[0], counted || ' ' || COALESCE(NEW.id, OLD.id));
        RETURN NULL;
      END $$;

      CREATE TRIGGER provider_changed AFTER INSERT OR UPDATE OR DELETE ON provider
        FOR EACH ROW EXECUTE FUNCTION count_change('providers');
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP TABLE provider;
      DROP FUNCTION count_change();
      DELETE FROM change_counter WHERE name = 'providers';
    `);
  }
}
