import { describeColumn } from '../src/request-log/columns.js';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Policies by URL. Replicas of the version before ask none of them, so policies are created when all replicas are of this
 * one.
 */
export class Policies1798000470000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE policy (
        id uuid CONSTRAINT policy_pkey PRIMARY KEY,
        name text NOT NULL CONSTRAINT policy_name_key UNIQUE,
        shown_url text NOT NULL,
        sealed bytea NOT NULL,
        team_ids uuid[],
        key_ids uuid[],
        models text[],
        send text NOT NULL CONSTRAINT policy_send_check CHECK (send IN ('head', 'body')),
        timeout_ms int NOT NULL,
        on_failure text NOT NULL CONSTRAINT policy_on_failure_check CHECK (on_failure IN ('reject', 'allow')),
        cache_seconds int NOT NULL,
        run_order int NOT NULL,
        enabled boolean NOT NULL DEFAULT true,
        version int NOT NULL DEFAULT 1,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now()
      );
      COMMENT ON TABLE policy IS 'URLs that are asked whether a call is forwarded.';
      COMMENT ON COLUMN policy.team_ids IS 'Teams whose calls it is asked about, beside those of key_ids; null in both: all calls.';
      COMMENT ON COLUMN policy.key_ids IS 'Keys whose calls it is asked about, beside those of team_ids.';
      COMMENT ON COLUMN policy.models IS 'Patterns of the models that it is asked about; null: all calls.';
      COMMENT ON COLUMN policy.send IS 'head: facts of the call; body: its body as well.';
      COMMENT ON COLUMN policy.on_failure IS 'What happens to a call if its URL does not decide: reject or allow.';
      COMMENT ON COLUMN policy.cache_seconds IS 'How long a decision counts for calls like it; 0: for none.';
      COMMENT ON COLUMN policy.run_order IS 'Policies are asked in ascending order.';
      COMMENT ON COLUMN policy.enabled IS 'If false, it is not asked.';
      COMMENT ON COLUMN policy.version IS 'Increases with every change by an actor.';

      INSERT INTO change_counter (name, value) VALUES ('policies', 0);
      CREATE TRIGGER policy_changed AFTER INSERT OR UPDATE OR DELETE
        ON policy FOR EACH ROW EXECUTE FUNCTION count_change('policies');

      COMMENT ON COLUMN request_log.tags IS '${describeColumn('tags').replaceAll("'", "''")}';
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP TABLE policy;
      DELETE FROM change_counter WHERE name = 'policies';
    `);
  }
}
