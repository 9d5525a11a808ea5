import type { MigrationInterface, QueryRunner } from 'typeorm';
import { commentOnRequestLog } from './comments.js';

/** The view of rejected requests by hour and limit. @param owner the team or key of a rule `l` */
const refusalsByLimit = (owner: string) => `
      CREATE OR REPLACE VIEW refusals_by_limit_hour AS
        SELECT date_trunc('hour', r.minute, 'UTC') AS hour, l.scope, l.resource, l.period,
               t.name AS team, k.name AS key, sum(r.calls)::bigint AS calls, max(r.last_at) AS last_at
        FROM refusal r
        JOIN limit_rule l ON l.nr = r.rule_nr
        LEFT JOIN gateway_key k ON k.id = ${owner}
        LEFT JOIN team t ON t.id = COALESCE(k.team_id, ${owner})
        GROUP BY 1, 2, 3, 4, 5, 6;`;

/** Limits of the installation and of groups of teams, of some providers and models, and of each session. */
export class LimitOwners1798000330000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      -- Versions before know neither owner_id nor filters: to them, a rule with such belongs to nobody.
      ALTER TABLE limit_rule
        ADD COLUMN owner_id uuid,
        ADD COLUMN providers text[],
        ADD COLUMN models text[],
        ADD COLUMN filter text NOT NULL DEFAULT '',
        DROP CONSTRAINT limit_rule_scope_check,
        ADD CONSTRAINT limit_rule_scope_check
          CHECK (scope ~ '^(installation|group|team|key)(_end_user|_session)?$'),
        DROP CONSTRAINT limit_rule_kind_check,
        ADD CONSTRAINT limit_rule_kind_check CHECK (
          (resource IN ('requests', 'tokens') AND period = 'minute')
          OR (resource = 'concurrent_requests' AND period = 'at_once')
          OR (resource IN ('usd', 'tokens')
              AND CASE WHEN scope ~ '_session$' THEN period = 'session' ELSE period IN ('day', 'week', 'month', 'total') END)),
        ADD CONSTRAINT limit_rule_owner_key UNIQUE (owner_id, scope, filter, resource, period);
      COMMENT ON COLUMN limit_rule.owner_id IS 'The team, key or group; zeros for the installation. Null: scope_id.';
      COMMENT ON COLUMN limit_rule.providers IS 'Only calls to these providers count; null: all.';
      COMMENT ON COLUMN limit_rule.models IS 'Only calls of these models count, patterns in which * stands for any characters; null: all.';
      COMMENT ON COLUMN limit_rule.filter IS 'The providers and models in one text, so that they can be compared.';

      -- The name of a group stands in the responses to calls that its limits reject.
      CREATE TRIGGER team_group_renamed AFTER UPDATE OF name ON team_group
        FOR EACH ROW WHEN (NEW.name <> OLD.name) EXECUTE FUNCTION count_change('limits');

      ${refusalsByLimit('COALESCE(l.owner_id, l.scope_id)')}

      ALTER TABLE request_log ADD COLUMN charge_rules bigint[], ADD COLUMN limit_session text;`);
    await commentOnRequestLog(queryRunner);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE request_log DROP COLUMN charge_rules, DROP COLUMN limit_session;
      DROP TRIGGER team_group_renamed ON team_group;
      ${refusalsByLimit('l.scope_id')}
      DELETE FROM limit_rule WHERE owner_id IS NOT NULL;
      ALTER TABLE limit_rule
        DROP CONSTRAINT limit_rule_owner_key,
        DROP CONSTRAINT limit_rule_scope_check,
        ADD CONSTRAINT limit_rule_scope_check CHECK (scope IN ('team', 'key', 'team_end_user', 'key_end_user')),
        DROP CONSTRAINT limit_rule_kind_check,
        ADD CONSTRAINT limit_rule_kind_check CHECK (
          (resource IN ('requests', 'tokens') AND period = 'minute')
          OR (resource = 'concurrent_requests' AND period = 'at_once')
          OR (resource IN ('usd', 'tokens') AND period IN ('day', 'week', 'month', 'total'))),
        DROP COLUMN owner_id, DROP COLUMN providers, DROP COLUMN models, DROP COLUMN filter;`);
  }
}
