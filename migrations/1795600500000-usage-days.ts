import type { MigrationInterface, QueryRunner } from 'typeorm';
import { days, viewsOf } from './1795400002000-usage-views-of-sums.js';
import { comment } from './comments.js';

/** Adds up usage_slot by UTC day, so that a month of many keys and models is read in milliseconds. */
export class UsageDays1795600500000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    const latency = Array.from({ length: 12 }, (_, i) => `sum(latency[${i + 1}])::bigint`);
    await queryRunner.query(`
      CREATE TABLE usage_day (LIKE usage_slot INCLUDING ALL);
      LOCK usage_slot IN EXCLUSIVE MODE;
      INSERT INTO usage_day
      SELECT date_trunc('day', slot, 'UTC'), team_id, key_id, provider, model, sum(calls), sum(errors),
             sum(calls_without_tokens), sum(unpriced_calls), sum(prompt_tokens), sum(completion_tokens), sum(cached_tokens),
             sum(cache_write_tokens), sum(reasoning_tokens), sum(cost_usd), sum(request_bytes), sum(response_bytes),
             sum(duration_ms), ARRAY[${latency.join(', ')}]
      FROM usage_slot GROUP BY 1, 2, 3, 4, 5;
      ${viewsOf(days())}
    `);
    await comment(queryRunner, 'usage_day', {
      kind: 'TABLE',
      about: 'Sums of usage_slot by UTC day; USAGE_RETENTION_DAYS limits it.',
      columns: { slot: 'Start of the UTC day.' },
    });
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ${viewsOf('usage_half_hour')}
      DROP TABLE usage_day;
    `);
  }
}
