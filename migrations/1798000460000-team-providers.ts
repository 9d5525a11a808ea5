import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Providers that belong to a team, and which providers a team may use. Replicas of the version before know neither: they
 * send calls of any team to such a provider. So teams get providers when all replicas are of this version.
 */
export class TeamProviders1798000460000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE provider ADD team_id uuid CONSTRAINT provider_team_id_fkey REFERENCES team (id);
      CREATE INDEX provider_team_id_idx ON provider (team_id);
      COMMENT ON COLUMN provider.team_id IS 'The only team that may use it; null for all teams.';

      ALTER TABLE team ADD providers text[], ADD default_provider text;
      COMMENT ON COLUMN team.providers IS
        'Names of the providers and routes that its keys may use; null for its own and those of no team.';
      COMMENT ON COLUMN team.default_provider IS
        'Provider or route that its calls to /v1 go to; null for the default of all teams.';
      CREATE TRIGGER team_providers_changed AFTER UPDATE OF providers, default_provider ON team
        FOR EACH ROW WHEN (OLD.providers IS DISTINCT FROM NEW.providers
          OR OLD.default_provider IS DISTINCT FROM NEW.default_provider)
        EXECUTE FUNCTION count_key_change();

      ALTER TABLE gateway_key
        DROP CONSTRAINT gateway_key_endpoints_check,
        ADD CONSTRAINT gateway_key_endpoints_check CHECK (endpoints IN ('inference', 'own', 'all'));
      COMMENT ON COLUMN gateway_key.endpoints IS
        'inference: only the inference endpoints; own: every path at providers of its team; all: every path.';
    `);
  }

  /** Nobody may use more than before: what the version before cannot restrict is disabled, or restricted by the keys. */
  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      UPDATE provider SET enabled = false WHERE team_id IS NOT NULL;
      UPDATE gateway_key k SET providers = CASE WHEN k.providers IS NULL THEN t.providers
          ELSE ARRAY(SELECT name FROM unnest(k.providers) AS name WHERE name = ANY (t.providers)) END
        FROM team t WHERE t.id = k.team_id AND t.providers IS NOT NULL;
      UPDATE gateway_key SET endpoints = 'inference' WHERE endpoints = 'own';
      ALTER TABLE gateway_key
        DROP CONSTRAINT gateway_key_endpoints_check,
        ADD CONSTRAINT gateway_key_endpoints_check CHECK (endpoints IN ('inference', 'all'));
      COMMENT ON COLUMN gateway_key.endpoints IS 'inference: only the inference endpoints; all: every path.';
      DROP TRIGGER team_providers_changed ON team;
      ALTER TABLE team DROP providers, DROP default_provider;
      ALTER TABLE provider DROP team_id;
    `);
  }
}
