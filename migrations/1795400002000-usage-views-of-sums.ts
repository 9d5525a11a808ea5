import type { MigrationInterface, QueryRunner } from 'typeorm';
import { createViewsOfRows } from './1795200000000-comments.js';
import { comment, type Comments, commentOnRequestLog } from './comments.js';

const HAS_TOKENS = '(l.prompt_tokens IS NOT NULL OR l.completion_tokens IS NOT NULL)';
const IS_ERROR = `(l.status >= 400 OR l.outcome NOT IN ('completed', 'replayed', 'client_aborted'))`;

/** Each with its sum over rows of the log. */
export const SUMS: Readonly<Record<string, string>> = {
  calls: 'count(*)',
  errors: `count(*) FILTER (WHERE ${IS_ERROR})`,
  calls_without_tokens: `count(*) FILTER (WHERE l.method = 'POST' AND (l.status < 400 OR l.status IS NULL)
    AND l.outcome <> 'replayed' AND NOT ${HAS_TOKENS})`,
  prompt_tokens: 'sum(l.prompt_tokens)',
  completion_tokens: 'sum(l.completion_tokens)',
  cached_tokens: 'sum(l.cached_tokens)',
  cache_write_tokens: 'sum(l.cache_write_tokens)',
  reasoning_tokens: 'sum(l.reasoning_tokens)',
  request_bytes: 'sum(l.request_bytes)',
  response_bytes: 'sum(l.response_bytes)',
  cost_usd: 'sum(l.cost_usd)',
  unpriced_calls: `count(*) FILTER (WHERE l.cost_usd IS NULL AND ${HAS_TOKENS})`,
};
const NAMES = Object.keys(SUMS);

/** The half-hourly sums, and the rows that are not in them yet: what the views add up. @param sums over rows of the log */
export const halfHours = (sums = SUMS): string => `
  SELECT slot, (slot AT TIME ZONE 'UTC')::date AS day, team_id, key_id, provider, model, ${NAMES.join(', ')}
  FROM usage_slot
  UNION ALL
  SELECT date_bin('30 minutes', l.started_at, 'epoch'), (date_bin('30 minutes', l.started_at, 'epoch') AT TIME ZONE 'UTC')::date,
         l.team_id, l.key_id, l.provider, l.model,
         ${Object.entries(sums)
           .map(([name, sql]) => `${sql}${name === 'cost_usd' ? '' : '::bigint'} AS ${name}`)
           .join(', ')}
  FROM request_log l
  WHERE l.recorded_at > (SELECT "cursor" FROM usage_rollup) AND l.repaired_at IS NULL
  GROUP BY 1, 2, 3, 4, 5, 6`;

/** The rows that are not in the sums yet, like usage_half_hour. */
const newRows = (sums = SUMS): string => halfHours(sums).slice(halfHours(sums).indexOf('UNION ALL'));
/** The same by UTC day, where the days of `usage_day` are enough. */
export const days = (sums = SUMS): string => `(
  SELECT slot, (slot AT TIME ZONE 'UTC')::date AS day, team_id, key_id, provider, model, ${NAMES.join(', ')}
  FROM usage_day ${newRows(sums)})`;

/** @param sums over rows of the log */
export const costByUserDay = (sums = SUMS): string => `
  CREATE OR REPLACE VIEW cost_by_user_day AS
    SELECT (l.started_at AT TIME ZONE 'UTC')::date AS day, t.name AS team, k.name AS key, l.key_id, l.end_user,
           ${['calls', 'errors', 'prompt_tokens', 'completion_tokens', 'cost_usd', 'unpriced_calls']
             .map((name) => `${sums[name]} AS ${name}`)
             .join(', ')}
    FROM request_log l LEFT JOIN gateway_key k ON k.id = l.key_id LEFT JOIN team t ON t.id = l.team_id
    GROUP BY 1, 2, 3, 4, 5;`;

/** Counts and tokens are 0 where there are none; a cost is null. */
const OF_SLOTS = NAMES.map((name) =>
  name === 'cost_usd' ? 'sum(u.cost_usd) AS cost_usd' : `COALESCE(sum(u.${name}), 0)::bigint AS ${name}`,
).join(', ');

/** @param source usage_half_hour, or days() */
export function viewsOf(source: string): string {
  return `
    CREATE OR REPLACE VIEW usage_by_team_day AS
      SELECT u.day, t.name AS team, u.team_id, ${OF_SLOTS}
      FROM ${source} u LEFT JOIN team t ON t.id = u.team_id
      GROUP BY 1, 2, 3;
    CREATE OR REPLACE VIEW usage_by_key_day AS
      SELECT u.day, t.name AS team, k.name AS key, u.key_id, ${OF_SLOTS}
      FROM ${source} u LEFT JOIN gateway_key k ON k.id = u.key_id LEFT JOIN team t ON t.id = u.team_id
      GROUP BY 1, 2, 3, 4;
    CREATE OR REPLACE VIEW usage_by_model_day AS
      SELECT u.day, u.provider, u.model, ${OF_SLOTS}
      FROM ${source} u
      GROUP BY 1, 2, 3;
    CREATE OR REPLACE VIEW cost_by_team_month AS
      SELECT date_trunc('month', u.day)::date AS month, t.name AS team, u.team_id, sum(u.calls)::bigint AS calls,
             COALESCE(sum(u.prompt_tokens), 0)::bigint AS prompt_tokens,
             COALESCE(sum(u.completion_tokens), 0)::bigint AS completion_tokens,
             sum(u.cost_usd) AS cost_usd, sum(u.unpriced_calls)::bigint AS unpriced_calls
      FROM ${source} u LEFT JOIN team t ON t.id = u.team_id
      GROUP BY 1, 2, 3;`;
}

const SUMS_ABOUT = {
  errors: 'Calls with a status of 400 or above, or that the provider or the gateway did not complete.',
  calls_without_tokens:
    'Calls that may have used tokens although the provider reported none: they are missing from the sums of tokens.',
  cost_usd: 'Exact sum of the costs in USD; null if no call has one.',
  unpriced_calls: 'Calls with token counts and without a cost, for example because their model has no price.',
};
const DAY = { day: 'UTC day.' };
const MONTH = { month: 'First day of the month, in UTC.' };

const COMMENTS: Readonly<Record<string, Comments>> = {
  usage_slot: {
    kind: 'TABLE',
    about: 'Half-hourly sums of request_log by key, provider and model; USAGE_RETENTION_DAYS limits it.',
    columns: {
      slot: 'Start of the half hour, in UTC.',
      duration_ms: 'Sum of the durations.',
      latency: 'Calls by duration: below 50 ms, 100, 250, 500, 1 s, 2, 4, 8, 15, 30, 60, and longer.',
      ...SUMS_ABOUT,
    },
  },
  usage_rollup: {
    kind: 'TABLE',
    about: 'One row: rows of request_log recorded up to this time are in usage_slot.',
    columns: {},
  },
  price: {
    kind: 'TABLE',
    about: 'Prices of models in USD per million tokens, of the catalogue and of your own.',
    columns: {},
  },
  unpriced_model: {
    kind: 'TABLE',
    about: 'Models that were called and have no price.',
    columns: {},
  },
  usage_half_hour: {
    kind: 'VIEW',
    about:
      'Sums by half hour, key, provider and model, up to the present: add them up, as the other views do.',
    columns: { slot: 'Start of the half hour, in UTC.', ...DAY, ...SUMS_ABOUT },
  },
  usage_by_team_day: { kind: 'VIEW', about: 'Sums by UTC day and team.', columns: { ...DAY, ...SUMS_ABOUT } },
  usage_by_key_day: { kind: 'VIEW', about: 'Sums by UTC day and key.', columns: { ...DAY, ...SUMS_ABOUT } },
  usage_by_model_day: {
    kind: 'VIEW',
    about: 'Sums by UTC day, provider and model.',
    columns: { ...DAY, ...SUMS_ABOUT },
  },
  cost_by_team_month: {
    kind: 'VIEW',
    about: 'Calls, tokens and cost by month and team.',
    columns: { ...MONTH, cost_usd: SUMS_ABOUT.cost_usd, unpriced_calls: SUMS_ABOUT.unpriced_calls },
  },
  cost_by_user_day: {
    kind: 'VIEW',
    about:
      'Calls, tokens and cost by UTC day, key and end user. Reads the rows: filter on started_at in request_log for a long log.',
    columns: {
      ...DAY,
      end_user: 'As the client named it; null if it named none.',
      cost_usd: SUMS_ABOUT.cost_usd,
    },
  },
};

/** The views of usage read half-hourly sums in place of the log, and two more tell costs. */
export class UsageViewsOfSums1795400002000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE INDEX usage_slot_day_idx ON usage_slot (((slot AT TIME ZONE 'UTC')::date));
      DROP VIEW usage_by_team_day, usage_by_key_day, usage_by_model_day;
      CREATE VIEW usage_half_hour AS ${halfHours()};
      ${viewsOf('usage_half_hour')}
      ${costByUserDay()}
    `);
    for (const [name, comments] of Object.entries(COMMENTS)) await comment(queryRunner, name, comments);
    await commentOnRequestLog(queryRunner);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP VIEW cost_by_user_day, cost_by_team_month, usage_by_team_day, usage_by_key_day, usage_by_model_day, usage_half_hour;
      DROP INDEX usage_slot_day_idx;
    `);
    await createViewsOfRows(queryRunner);
    for (const name of ['usage_slot', 'usage_rollup', 'price', 'unpriced_model'])
      await comment(queryRunner, name, COMMENTS[name]!, true);
  }
}
