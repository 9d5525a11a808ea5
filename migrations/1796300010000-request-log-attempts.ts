import type { MigrationInterface, QueryRunner } from 'typeorm';
import { costByUserDay, days, halfHours, SUMS, viewsOf } from './1795400002000-usage-views-of-sums.js';
import { commentOnRequestLog } from './comments.js';

const IS_CALL = `l.outcome <> 'retried'`;

/** As the views are before this: with the outcome `cached`, which is no error and lacks no tokens. */
const SUMS_BEFORE: typeof SUMS = {
  ...SUMS,
  errors: SUMS.errors!.replace(`'replayed', `, `'replayed', 'cached', `),
  calls_without_tokens: SUMS.calls_without_tokens!.replace(`<> 'replayed'`, `NOT IN ('replayed', 'cached')`),
};

/** An attempt that was followed by another one is no call; what it cost counts. */
const SUMS_OF_CALLS: typeof SUMS = {
  ...SUMS_BEFORE,
  calls: `count(*) FILTER (WHERE ${IS_CALL})`,
  errors: SUMS_BEFORE.errors!.replace('(WHERE ', `(WHERE ${IS_CALL} AND `),
  calls_without_tokens: SUMS_BEFORE.calls_without_tokens!.replace('(WHERE ', `(WHERE ${IS_CALL} AND `),
  request_bytes: `sum(l.request_bytes) FILTER (WHERE ${IS_CALL})`,
};

/** Attempts of calls by a route: which call they belong to. Nothing is rewritten: instant on any log. */
export class RequestLogAttempts1796300010000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE request_log ADD COLUMN call_id uuid, ADD COLUMN attempt smallint;
      ALTER TABLE usage_slot ADD COLUMN retried_attempts bigint NOT NULL DEFAULT 0;
      ALTER TABLE usage_day ADD COLUMN retried_attempts bigint NOT NULL DEFAULT 0;
      ${viewsOfRows(SUMS_OF_CALLS)}
    `);
    for (const name of ['usage_slot', 'usage_day'])
      await queryRunner.query(
        `COMMENT ON COLUMN ${name}.retried_attempts IS 'Attempts that were followed by another one; not among the calls.'`,
      );
    await commentOnRequestLog(queryRunner);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ${viewsOfRows(SUMS_BEFORE)}
      ALTER TABLE usage_day DROP COLUMN retried_attempts;
      ALTER TABLE usage_slot DROP COLUMN retried_attempts;
      ALTER TABLE request_log DROP COLUMN call_id, DROP COLUMN attempt;
    `);
  }
}

function viewsOfRows(sums: typeof SUMS): string {
  return `
    CREATE OR REPLACE VIEW usage_half_hour AS ${halfHours(sums)};
    ${viewsOf(days(sums))}
    ${costByUserDay(sums)}`;
}
