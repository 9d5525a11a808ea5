import type { MigrationInterface, QueryRunner } from 'typeorm';
import { commentOnRequestLog } from './comments.js';

const STREAM_USAGE =
  'Streams without usage: as_sent: they are forwarded; require: rejected; ask: stream_options is added.';

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

      COMMENT ON COLUMN team.models IS 'Patterns of model names that its keys may use; null for all.';
      COMMENT ON COLUMN gateway_key.models IS 'Patterns of model names that it may use; null for all.';
      COMMENT ON COLUMN team.stream_usage IS '${STREAM_USAGE}';
      COMMENT ON COLUMN gateway_key.stream_usage IS '${STREAM_USAGE}';
    `);
    await commentOnRequestLog(queryRunner);
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
