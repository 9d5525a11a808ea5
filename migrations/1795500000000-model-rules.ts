import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Model lists and the rule for the usage of streams, for teams and keys; what the gateway altered in a call. */
export class ModelRules1795500000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE team
        ADD models text[],
        ADD stream_usage text NOT NULL DEFAULT 'as_sent'
          CONSTRAINT team_stream_usage_check CHECK (stream_usage IN ('as_sent', 'require', 'ask'));
      ALTER TABLE gateway_key
        ADD models text[],
        ADD stream_usage text NOT NULL DEFAULT 'as_sent'
          CONSTRAINT gateway_key_stream_usage_check CHECK (stream_usage IN ('as_sent', 'require', 'ask'));
      ALTER TABLE request_log ADD altered text;

      -- Triggers of their own, so that other migrations can add columns too.
      CREATE TRIGGER team_rules_changed AFTER UPDATE OF models, stream_usage ON team
        FOR EACH ROW EXECUTE FUNCTION count_key_change();
      CREATE TRIGGER gateway_key_rules_changed AFTER UPDATE OF models, stream_usage ON gateway_key
        FOR EACH ROW EXECUTE FUNCTION count_key_change();
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP TRIGGER team_rules_changed ON team;
      DROP TRIGGER gateway_key_rules_changed ON gateway_key;
      ALTER TABLE request_log DROP altered;
      ALTER TABLE gateway_key DROP models, DROP stream_usage;
      ALTER TABLE team DROP models, DROP stream_usage;
    `);
  }
}
