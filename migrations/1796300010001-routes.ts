import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Routes, and a counter with which every replica learns of their changes. */
export class Routes1796300010001 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE route (
        id uuid CONSTRAINT route_pkey PRIMARY KEY,
        name text NOT NULL CONSTRAINT route_name_key UNIQUE
          CONSTRAINT route_name_check CHECK (name ~ '^[a-z0-9][a-z0-9_-]{0,62}$' AND name <> 'default'),
        targets jsonb NOT NULL,
        strategy text NOT NULL CONSTRAINT route_strategy_check CHECK (strategy IN ('order', 'spread')),
        retry_on text[] NOT NULL
          CONSTRAINT route_retry_on_check CHECK (retry_on <@ ARRAY['connect', 'refused', 'failed']),
        max_attempts smallint NOT NULL,
        dialect text NOT NULL CONSTRAINT route_dialect_check CHECK (dialect IN ('openai', 'anthropic', 'any')),
        is_default boolean NOT NULL DEFAULT false,
        version int NOT NULL DEFAULT 1,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE UNIQUE INDEX route_is_default_key ON route (is_default) WHERE is_default;

      COMMENT ON TABLE route IS 'Routes: providers made of providers.';
      COMMENT ON COLUMN route.targets IS 'Providers, in order, and their own names of models.';
      COMMENT ON COLUMN route.strategy IS 'How a target is chosen.';
      COMMENT ON COLUMN route.retry_on IS 'What a call is sent to another target for.';
      COMMENT ON COLUMN route.max_attempts IS 'Targets that a call is sent to at most.';
      COMMENT ON COLUMN route.dialect IS 'The API that all targets have.';
      COMMENT ON COLUMN route.is_default IS 'Calls to /v1 use it, unless PROVIDER_URL is set.';
      COMMENT ON COLUMN route.version IS 'Increases with every change by an actor.';

      INSERT INTO change_counter (name, value) VALUES ('routes', 0);
      CREATE TRIGGER route_changed AFTER INSERT OR UPDATE OR DELETE ON route
        FOR EACH ROW EXECUTE FUNCTION count_change('routes');

      -- Providers and routes have their names in one space. The lock is the one of every change of providers.
      CREATE FUNCTION provider_name_taken() RETURNS trigger LANGUAGE plpgsql AS $$
      DECLARE
        v_taken boolean;
      BEGIN
        PERFORM FROM change_counter WHERE name = 'providers' FOR UPDATE;
        IF TG_TABLE_NAME = 'route' THEN v_taken := EXISTS (SELECT FROM provider WHERE name = NEW.name);
        ELSE v_taken := EXISTS (SELECT FROM route WHERE name = NEW.name);
        END IF;
        IF v_taken THEN
          RAISE unique_violation USING MESSAGE = 'a provider or a route has this name',
            CONSTRAINT = TG_TABLE_NAME || '_name_key';
        END IF;
        RETURN NEW;
      END $$;
      CREATE TRIGGER route_name_taken BEFORE INSERT OR UPDATE OF name ON route
        FOR EACH ROW EXECUTE FUNCTION provider_name_taken();
      CREATE TRIGGER provider_name_taken BEFORE INSERT OR UPDATE OF name ON provider
        FOR EACH ROW EXECUTE FUNCTION provider_name_taken();
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP TRIGGER provider_name_taken ON provider;
      DROP TABLE route;
      DROP FUNCTION provider_name_taken();
      DELETE FROM change_counter WHERE name = 'routes';
    `);
  }
}
