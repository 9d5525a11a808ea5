import type { MigrationInterface, QueryRunner } from 'typeorm';

const HAS_TOKENS = '(l.prompt_tokens IS NOT NULL OR l.completion_tokens IS NOT NULL)';
const IS_CALL = `l.outcome <> 'retried'`;
const IS_UNKNOWN = 'l.usage_final = false';
const HAS_NO_COST = `l.cost_usd IS NULL AND ${HAS_TOKENS}`;

/** Each sum of the views, over rows of the log. */
const SUMS: Readonly<Record<string, string>> = {
  calls: `count(*) FILTER (WHERE ${IS_CALL})`,
  errors: `count(*) FILTER (WHERE ${IS_CALL} AND (l.status >= 400 OR l.outcome NOT IN ('completed', 'replayed', 'cached', 'client_aborted')))`,
  calls_without_tokens: `count(*) FILTER (WHERE ${IS_CALL} AND l.method = 'POST' AND (l.status < 400 OR l.status IS NULL)
    AND l.outcome NOT IN ('replayed', 'cached') AND NOT ${HAS_TOKENS})`,
  prompt_tokens: 'sum(l.prompt_tokens)',
  completion_tokens: 'sum(l.completion_tokens)',
  cached_tokens: 'sum(l.cached_tokens)',
  cache_write_tokens: 'sum(l.cache_write_tokens)',
  reasoning_tokens: 'sum(l.reasoning_tokens)',
  request_bytes: `sum(l.request_bytes) FILTER (WHERE ${IS_CALL})`,
  response_bytes: 'sum(l.response_bytes)',
  cost_usd: 'sum(l.cost_usd)',
  unpriced_calls: `count(*) FILTER (WHERE ${HAS_NO_COST})`,
};
/** They come last: CREATE OR REPLACE VIEW can add columns only there. */
const ADDED: typeof SUMS = {
  unknown_calls: `count(*) FILTER (WHERE ${IS_UNKNOWN})`,
  unknown_low_usd: `sum(CASE WHEN ${IS_UNKNOWN} THEN l.cost_low_usd END)`,
  unknown_high_usd: `sum(CASE WHEN ${IS_UNKNOWN} THEN l.cost_high_usd END)`,
  unbounded_calls: `count(*) FILTER (WHERE ${IS_UNKNOWN} AND l.cost_high_usd IS NULL)`,
};
const ALL: typeof SUMS = {
  ...SUMS,
  unpriced_calls: `count(*) FILTER (WHERE ${HAS_NO_COST} AND COALESCE(l.usage_final, true))`,
  ...ADDED,
};

const ABOUT: Readonly<Record<string, string>> = {
  unknown_calls:
    'Calls whose cost is not known, because the provider may have billed what was not read. It is not in cost_usd.',
  unknown_low_usd: 'What these calls cost at least, in USD; never a part of cost_usd.',
  unknown_high_usd:
    'What these calls cost at most, in USD, without those among unbounded_calls; never a part of cost_usd.',
  unbounded_calls: 'Calls among unknown_calls of which no upper bound is known.',
};
const TABLES = ['usage_slot', 'usage_day'];
const VIEWS_OF_SUMS = ['usage_half_hour', 'usage_by_team_day', 'usage_by_key_day', 'usage_by_model_day'];
const VIEWS_OF_COSTS = ['cost_by_team_month', 'cost_by_user_day'];

/** What the sums of costs leave out, beside them. Nothing is rewritten: instant on any log. */
export class UnknownCosts1798000210000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    const tables = TABLES.map(
      (table) => `
        ALTER TABLE ${table} ADD COLUMN unknown_calls bigint NOT NULL DEFAULT 0, ADD COLUMN unknown_low_usd numeric,
          ADD COLUMN unknown_high_usd numeric, ADD COLUMN unbounded_calls bigint NOT NULL DEFAULT 0;`,
    );
    await queryRunner.query(`
      ${tables.join('\n')}
      ALTER TABLE usage_rollup ADD COLUMN complete_cursor timestamptz;
      UPDATE usage_rollup SET complete_cursor = "cursor";
      COMMENT ON COLUMN usage_rollup.complete_cursor IS
        'Rows recorded up to this time are in all sums. Behind the cursor: a process of an earlier version has added rows.';
      ${views(ALL, Object.keys(ADDED))}
    `);
    for (const name of [...TABLES, ...VIEWS_OF_SUMS, ...VIEWS_OF_COSTS])
      for (const [column, about] of Object.entries(ABOUT))
        await queryRunner.query(`COMMENT ON COLUMN ${name}.${column} IS '${about}'`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    const columns = Object.keys(ADDED).map((name) => `DROP COLUMN ${name}`);
    const comments = (await queryRunner.query(
      `SELECT c.relname AS view, a.attname AS column, d.description AS text
       FROM pg_description d JOIN pg_class c ON c.oid = d.objoid
       LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.objsubid AND d.objsubid > 0
       WHERE d.classoid = 'pg_class'::regclass AND c.oid = ANY ($1::regclass[])`,
      [[...VIEWS_OF_SUMS, ...VIEWS_OF_COSTS]],
    )) as { view: string; column: string | null; text: string }[];
    await queryRunner.query(`
      DROP VIEW ${[...VIEWS_OF_COSTS, ...VIEWS_OF_SUMS].join(', ')};
      ${views(SUMS, [])}
      ALTER TABLE usage_rollup DROP COLUMN complete_cursor;
      ${TABLES.map((table) => `ALTER TABLE ${table} ${columns.join(', ')};`).join('\n')}
    `);
    for (const { view, column, text } of comments)
      if (column === null || !(column in ADDED))
        await queryRunner.query(
          `COMMENT ON ${column === null ? `VIEW ${view}` : `COLUMN ${view}."${column}"`} IS '${text.replaceAll("'", "''")}'`,
        );
  }
}

const isMoney = (name: string): boolean => name.endsWith('_usd');
/** Counts and tokens are 0 where there are none; a cost is null. */
const ofSlots = (name: string): string =>
  isMoney(name) ? `sum(u.${name}) AS ${name}` : `COALESCE(sum(u.${name}), 0)::bigint AS ${name}`;

/** @param sums over rows of the log @param added to the views of costs, at their end */
function views(sums: typeof SUMS, added: readonly string[]): string {
  const names = Object.keys(sums);
  const SLOT = `date_bin('30 minutes', l.started_at, 'epoch')`;
  const source = (table: string) => `
    SELECT slot, (slot AT TIME ZONE 'UTC')::date AS day, team_id, key_id, provider, model, ${names.join(', ')}
    FROM ${table}
    UNION ALL
    SELECT ${SLOT}, (${SLOT} AT TIME ZONE 'UTC')::date, l.team_id, l.key_id, l.provider, l.model,
           ${names.map((name) => `${sums[name]}${isMoney(name) ? '' : '::bigint'} AS ${name}`).join(', ')}
    FROM request_log l
    WHERE l.recorded_at > (SELECT "cursor" FROM usage_rollup) AND l.repaired_at IS NULL
    GROUP BY 1, 2, 3, 4, 5, 6`;
  const days = `(${source('usage_day')})`;
  const all = names.map(ofSlots).join(', ');
  return `
    CREATE OR REPLACE VIEW usage_half_hour AS ${source('usage_slot')};
    CREATE OR REPLACE VIEW usage_by_team_day AS
      SELECT u.day, t.name AS team, u.team_id, ${all}
      FROM ${days} u LEFT JOIN team t ON t.id = u.team_id
      GROUP BY 1, 2, 3;
    CREATE OR REPLACE VIEW usage_by_key_day AS
      SELECT u.day, t.name AS team, k.name AS key, u.key_id, ${all}
      FROM ${days} u LEFT JOIN gateway_key k ON k.id = u.key_id LEFT JOIN team t ON t.id = u.team_id
      GROUP BY 1, 2, 3, 4;
    CREATE OR REPLACE VIEW usage_by_model_day AS
      SELECT u.day, u.provider, u.model, ${all}
      FROM ${days} u
      GROUP BY 1, 2, 3;
    CREATE OR REPLACE VIEW cost_by_team_month AS
      SELECT date_trunc('month', u.day)::date AS month, t.name AS team, u.team_id, sum(u.calls)::bigint AS calls,
             COALESCE(sum(u.prompt_tokens), 0)::bigint AS prompt_tokens,
             COALESCE(sum(u.completion_tokens), 0)::bigint AS completion_tokens,
             sum(u.cost_usd) AS cost_usd, sum(u.unpriced_calls)::bigint AS unpriced_calls
             ${added.map((name) => `, ${ofSlots(name)}`).join('')}
      FROM ${days} u LEFT JOIN team t ON t.id = u.team_id
      GROUP BY 1, 2, 3;
    CREATE OR REPLACE VIEW cost_by_user_day AS
      SELECT (l.started_at AT TIME ZONE 'UTC')::date AS day, t.name AS team, k.name AS key, l.key_id, l.end_user,
             ${[
               'calls',
               'errors',
               'prompt_tokens',
               'completion_tokens',
               'cost_usd',
               'unpriced_calls',
               ...added,
             ]
               .map((name) => `${sums[name]} AS ${name}`)
               .join(', ')}
      FROM request_log l LEFT JOIN gateway_key k ON k.id = l.key_id LEFT JOIN team t ON t.id = l.team_id
      GROUP BY 1, 2, 3, 4, 5;`;
}
