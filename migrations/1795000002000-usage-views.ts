import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Four views for people in psql. Days and hours are UTC whatever the session's time zone is, hence plain `date` and
 * `timestamp`. A view cannot skip partitions by its own day column: for a long log ask request_log with a range of
 * started_at, or the admin API with from and to.
 */

/** A call without a good answer. A client that left is no error; nor is its row, which may hold a good status. */
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
const HOUR = `date_trunc('hour', l.started_at AT TIME ZONE 'UTC')`;

export class UsageViews1795000002000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE VIEW usage_by_team_day AS
        SELECT ${DAY} AS day, t.name AS team, l.team_id, ${SUMS}
        FROM request_log l LEFT JOIN team t ON t.id = l.team_id
        GROUP BY 1, 2, 3;
      CREATE VIEW usage_by_key_day AS
        SELECT ${DAY} AS day, t.name AS team, k.name AS key, l.key_id, ${SUMS}
        FROM request_log l LEFT JOIN gateway_key k ON k.id = l.key_id LEFT JOIN team t ON t.id = k.team_id
        GROUP BY 1, 2, 3, 4;
      CREATE VIEW usage_by_model_day AS
        SELECT ${DAY} AS day, l.provider, l.model, ${SUMS}
        FROM request_log l
        GROUP BY 1, 2, 3;
      CREATE VIEW errors_by_key_hour AS
        SELECT ${HOUR} AS hour, t.name AS team, k.name AS key, l.key_id, l.provider, l.status, l.outcome, l.error_code,
          count(*) AS errors
        FROM request_log l LEFT JOIN gateway_key k ON k.id = l.key_id LEFT JOIN team t ON t.id = k.team_id
        WHERE ${IS_ERROR}
        GROUP BY 1, 2, 3, 4, 5, 6, 7, 8;
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      'DROP VIEW usage_by_team_day, usage_by_key_day, usage_by_model_day, errors_by_key_hour',
    );
  }
}
