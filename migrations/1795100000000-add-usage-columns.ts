import type { MigrationInterface, QueryRunner } from 'typeorm';

/** As in the migration that created the views. */
const IS_ERROR = `(l.status >= 400 OR l.outcome NOT IN ('completed', 'replayed', 'client_aborted'))`;

const SUMS = `
  count(*) AS calls,
  count(*) FILTER (WHERE ${IS_ERROR}) AS errors,
  COALESCE(sum(l.prompt_tokens), 0) AS prompt_tokens,
  COALESCE(sum(l.completion_tokens), 0) AS completion_tokens,
  COALESCE(sum(l.cached_tokens), 0) AS cached_tokens,
  COALESCE(sum(l.reasoning_tokens), 0) AS reasoning_tokens,
  COALESCE(sum(l.request_bytes), 0)::bigint AS request_bytes,
  COALESCE(sum(l.response_bytes), 0)::bigint AS response_bytes`;

const DAY = `(l.started_at AT TIME ZONE 'UTC')::date`;

/** @param added sums that come last: CREATE OR REPLACE VIEW can add columns only there */
function views(added = ''): string {
  return `
    CREATE OR REPLACE VIEW usage_by_team_day AS
      SELECT ${DAY} AS day, t.name AS team, l.team_id, ${SUMS}${added}
      FROM request_log l LEFT JOIN team t ON t.id = l.team_id
      GROUP BY 1, 2, 3;
    CREATE OR REPLACE VIEW usage_by_key_day AS
      SELECT ${DAY} AS day, t.name AS team, k.name AS key, l.key_id, ${SUMS}${added}
      FROM request_log l LEFT JOIN gateway_key k ON k.id = l.key_id LEFT JOIN team t ON t.id = k.team_id
      GROUP BY 1, 2, 3, 4;
    CREATE OR REPLACE VIEW usage_by_model_day AS
      SELECT ${DAY} AS day, l.provider, l.model, ${SUMS}${added}
      FROM request_log l
      GROUP BY 1, 2, 3;`;
}

/** Cache writes, and usage that has a price of its own. Nullable and without a default, so that no row is rewritten. */
export class AddUsageColumns1795100000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE request_log ADD COLUMN cache_write_tokens int, ADD COLUMN extra_usage jsonb;
      ${views(', COALESCE(sum(l.cache_write_tokens), 0) AS cache_write_tokens')}
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP VIEW usage_by_team_day, usage_by_key_day, usage_by_model_day;
      ALTER TABLE request_log DROP COLUMN cache_write_tokens, DROP COLUMN extra_usage;
      ${views()}
    `);
  }
}
