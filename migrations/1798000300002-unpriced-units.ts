import type { MigrationInterface, QueryRunner } from 'typeorm';
import { commentOnRequestLog } from './comments.js';

/** As Postgres writes the condition of `unpriced_calls`. */
const TOKENS = '((l.prompt_tokens IS NOT NULL) OR (l.completion_tokens IS NOT NULL))';
const END = ' AND COALESCE(l.usage_final, true)';
const TOKENS_OR_UNITS = `(${TOKENS.slice(1, -1)} OR (l.extra_usage IS NOT NULL))`;

const VIEWS = [
  'usage_half_hour',
  'usage_by_team_day',
  'usage_by_key_day',
  'usage_by_model_day',
  'cost_by_team_month',
  'cost_by_user_day',
];
const ABOUT =
  'Calls with tokens or other units and without a cost, for example because their model has no price.';
const ABOUT_BEFORE =
  'Calls with token counts and without a cost, for example because their model has no price.';

/** Calls of images, seconds or pages without a cost are unpriced too, also in the rows that are not in the sums yet. */
export class UnpricedUnits1798000300002 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await replaceInViews(queryRunner, TOKENS + END, TOKENS_OR_UNITS + END);
    await comment(queryRunner, ABOUT);
    await commentOnRequestLog(queryRunner);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await replaceInViews(queryRunner, TOKENS_OR_UNITS + END, TOKENS + END);
    await comment(queryRunner, ABOUT_BEFORE);
  }
}

async function comment(queryRunner: QueryRunner, about: string): Promise<void> {
  for (const name of ['usage_slot', 'usage_day', ...VIEWS])
    await queryRunner.query(`COMMENT ON COLUMN ${name}.unpriced_calls IS '${about}'`);
}

/** @throws Error if a view does not have it */
async function replaceInViews(queryRunner: QueryRunner, from: string, to: string): Promise<void> {
  for (const name of VIEWS) {
    const [{ text }] = (await queryRunner.query('SELECT pg_get_viewdef($1::regclass) AS text', [name])) as [
      { text: string },
    ];
    if (!text.includes(from)) throw new Error(`${name} does not contain: ${from}`);
    await queryRunner.query(`CREATE OR REPLACE VIEW ${name} AS ${text.replaceAll(from, to)}`);
  }
}
