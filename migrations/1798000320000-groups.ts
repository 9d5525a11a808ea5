import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Of usage_by_team_day, which are added up again. */
const COUNTS = [
  'calls',
  'errors',
  'calls_without_tokens',
  'prompt_tokens',
  'cached_tokens',
  'cache_write_tokens',
  'completion_tokens',
  'reasoning_tokens',
  'request_bytes',
  'response_bytes',
  'unpriced_calls',
  'unknown_calls',
  'unbounded_calls',
];
const AMOUNTS = ['cost_usd', 'unknown_low_usd', 'unknown_high_usd'];
const SUMS = [
  ...COUNTS.map((name) => `sum(u.${name})::bigint AS ${name}`),
  ...AMOUNTS.map((name) => `sum(u.${name}) AS ${name}`),
];

/**
 * Groups of teams. Replicas of the version before neither read nor write them: a team that they create is in no group.
 * Which group a team is in counts as a change of the limits, so that processes that cache rules read them again.
 */
export class Groups1798000320000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE team_group (
        id uuid CONSTRAINT team_group_pkey PRIMARY KEY,
        name text NOT NULL CONSTRAINT team_group_name_key UNIQUE,
        note text,
        created_at timestamptz NOT NULL DEFAULT now(),
        version int NOT NULL DEFAULT 1
      );
      COMMENT ON TABLE team_group IS 'Groups of teams. A team is in at most one.';
      COMMENT ON COLUMN team_group.note IS 'Free text.';
      COMMENT ON COLUMN team_group.version IS 'Increases with every change by an actor.';

      ALTER TABLE team ADD group_id uuid CONSTRAINT team_group_id_fkey REFERENCES team_group;
      COMMENT ON COLUMN team.group_id IS 'The group of the team; null for none.';
      CREATE INDEX team_group_id_idx ON team (group_id);

      CREATE VIEW usage_by_group_day AS
        SELECT u.day, g.name AS team_group, t.group_id, ${SUMS.join(', ')}
        FROM usage_by_team_day u LEFT JOIN team t ON t.id = u.team_id LEFT JOIN team_group g ON g.id = t.group_id
        GROUP BY 1, 2, 3;
      COMMENT ON VIEW usage_by_group_day IS 'Usage by UTC day and the present group of the team.';
      COMMENT ON COLUMN usage_by_group_day.team_group IS 'Present group of the teams; null for teams in none.';

      CREATE TRIGGER team_grouped AFTER INSERT ON team
        FOR EACH ROW WHEN (NEW.group_id IS NOT NULL) EXECUTE FUNCTION count_change('limits');
      CREATE TRIGGER team_group_changed AFTER UPDATE OF group_id ON team
        FOR EACH ROW WHEN (NEW.group_id IS DISTINCT FROM OLD.group_id) EXECUTE FUNCTION count_change('limits');
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP TRIGGER team_group_changed ON team;
      DROP TRIGGER team_grouped ON team;
      DROP VIEW usage_by_group_day;
      ALTER TABLE team DROP group_id;
      DROP TABLE team_group;
    `);
  }
}
