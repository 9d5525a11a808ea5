// `npm run seed:log -- --rows 5000000 --days 30`: a request log to try queries and the console on, spread over the days up
// to now, in the database of DATABASE_URL, else the embedded one. The calls are those of the keys, providers and prices that
// are there, and budgets count them. Without keys, or with `--teams`, it makes teams and keys named "seed …" (keys without a
// secret: nobody can call with them). Only adds; a database to be thrown away is the right place. It asks before it writes
// into any other than one that DATABASE_URL names for this command; `--yes` does without. Each day is one transaction, the
// newest day first: after an interruption the log has whole days.
import './check-node.mjs';
import { parseArgs } from 'node:util';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { pathToFileURL } from 'node:url';
import { main, prepare, root, StepError } from './prepare.mjs';

const CHUNK = 50_000;
/** Of its own, if there are no keys. */
const TEAMS = 20;
const KEYS_PER_TEAM = 10;
const MAX_KEYS = 10_000;
const DAY_MS = 86_400_000;

/** Preferred models, if there is a price for them. */
const MODELS = [
  'gpt-5-mini',
  'gpt-5',
  'gpt-4o-mini',
  'claude-sonnet-4-5',
  'claude-haiku-4-5',
  'gemini-2.5-flash',
];
const MODELS_PER_PROVIDER = 4;

/**
 * One chunk: rows at even distances from $1 on (Unix ms), $2 ms apart, numbered $3 to $4, of the keys $5 with their teams $6;
 * $7: of this run. $8 and what follows: provider, model, USD per million input, cached input and output tokens, price.
 */
const insertInto = (table) => `
  INSERT INTO ${table} (started_at, id, recorded_at, team_id, key_id, provider, method, path, model, streamed, status,
    outcome, error_code, error_cause, provider_error_type, provider_error_code, request_bytes, response_bytes, ttfb_ms,
    duration_ms, prompt_tokens, completion_tokens, cached_tokens, cost_usd, price_id, provider_request_id, sdk_retry_count,
    client_ip, user_agent, end_user, session_id)
  SELECT to_timestamp(ms / 1000.0),
    -- A UUIDv7: 48 bits of Unix milliseconds, the version, the variant, and other bits (RFC 9562 5.7). gen_random_uuid()
    -- takes longer than the rest of the row.
    (hex || '7' || substr(digest, 1, 3) || '8' || substr(digest, 4, 15))::uuid,
    to_timestamp((ms + 20 + floor(slow * 1000)) / 1000.0),
    ($6::uuid[])[k + 1], ($5::uuid[])[k + 1], ($8::text[])[m], 'POST', '/v1/chat/completions', ($9::text[])[m], slow < 0.6,
    CASE WHEN good THEN 200 WHEN lot < 0.972 THEN 429 WHEN lot < 0.980 THEN 400 WHEN lot < 0.986 THEN 500
      WHEN lot < 0.991 THEN 502 WHEN lot < 0.995 THEN 504 END::smallint,
    CASE WHEN lot < 0.986 THEN 'completed' WHEN lot < 0.991 THEN 'upstream_error' WHEN lot < 0.995 THEN 'upstream_timeout'
      ELSE 'client_aborted' END,
    CASE WHEN lot BETWEEN 0.986 AND 0.991 THEN 'upstream_unreachable' WHEN lot BETWEEN 0.991 AND 0.995 THEN 'upstream_timeout' END,
    CASE WHEN lot BETWEEN 0.986 AND 0.991 THEN 'ECONNREFUSED' END,
    CASE WHEN good OR lot >= 0.986 THEN NULL WHEN lot < 0.965 THEN 'rate_limit_error' WHEN lot < 0.972 THEN 'insufficient_quota'
      WHEN lot < 0.980 THEN 'invalid_request_error' ELSE 'server_error' END,
    CASE WHEN good OR lot >= 0.980 THEN NULL WHEN lot < 0.965 THEN 'rate_limit_exceeded' WHEN lot < 0.972 THEN 'insufficient_quota'
      ELSE 'context_length_exceeded' END,
    400 + floor(lot * 4000), 300 + floor(slow * 9000), 80 + slow * 200, 100 + slow * 4000,
    CASE WHEN good THEN input END, CASE WHEN good THEN output END, CASE WHEN good THEN cached END,
    CASE WHEN good THEN round(((input - cached) * ($10::numeric[])[m] + cached * ($11::numeric[])[m]
      + output * ($12::numeric[])[m]) / 1000000, 9) END,
    CASE WHEN good THEN ($13::uuid[])[m] END,
    'req_' || substr(digest, 1, 24), 0, '203.0.113.7', 'OpenAI/JS 6.49.0',
    CASE WHEN slow < 0.7 THEN 'user-' || i % 400 END, CASE WHEN slow < 0.4 THEN 'session-' || i / 20 END
  FROM (
    SELECT *, lot < 0.95 AS good, lpad(to_hex(ms), 12, '0') AS hex, md5($7 || i::text) AS digest,
      50 + floor(lot * 1500)::int AS input, 20 + floor(slow * 800)::int AS output,
      CASE WHEN slow < 0.5 THEN floor(lot * 450)::int ELSE 0 END AS cached
    FROM (
      -- The cube and the square: a few keys and models make most of the calls.
      SELECT i, floor(power(random(), 3) * array_length($5::uuid[], 1))::int AS k,
        1 + floor(power(random(), 2) * array_length($8::text[], 1))::int AS m, random() AS lot, random() AS slow,
        floor($1::float8 + i * $2::float8)::bigint AS ms
      FROM generate_series($3::bigint, $4::bigint) AS i) AS lots) AS row`;

/** Keys were used, budgets count what the log has, and models without a price are known: what the gateway does for calls. */
const NOTE_CALLS = `
  WITH used AS (SELECT key_id, max(started_at) AS at FROM request_log GROUP BY key_id)
  UPDATE gateway_key_secret s SET last_used_at = greatest(s.last_used_at, used.at) FROM used WHERE used.key_id = s.key_id;
  INSERT INTO limit_meter AS old (rule_id, subject, window_start, spent)
    SELECT r.id, '', w.start, sum(CASE r.resource WHEN 'usd' THEN round(coalesce(l.cost_usd, 0) * 1000000000)
      ELSE coalesce(l.prompt_tokens, 0) + coalesce(l.completion_tokens, 0) END)::bigint
    FROM limit_rule r
      CROSS JOIN LATERAL (SELECT CASE r.period WHEN 'total' THEN to_timestamp(0)
        ELSE date_trunc(r.period, now(), r.time_zone) END AS start) w
      JOIN request_log l ON l.started_at >= w.start AND r.scope_id = CASE r.scope WHEN 'team' THEN l.team_id ELSE l.key_id END
    WHERE r.scope IN ('team', 'key') AND r.resource IN ('usd', 'tokens') AND r.period IN ('day', 'week', 'month', 'total')
    GROUP BY 1, 3
    ON CONFLICT (rule_id, subject, window_start) DO UPDATE SET spent = greatest(old.spent, excluded.spent);
  INSERT INTO unpriced_model (provider, model, day)
    SELECT DISTINCT provider, model, (started_at AT TIME ZONE 'UTC')::date FROM request_log
    WHERE status = 200 AND cost_usd IS NULL AND model IS NOT NULL
    ON CONFLICT DO NOTHING`;

/**
 * The roll-up of usage has passed the times at which these rows claim to be recorded. It adds up all rows of the log
 * again; sums of days that the log no longer has stay as they are.
 */
const ADD_UP_AGAIN = `
  BEGIN;
  UPDATE usage_rollup SET "cursor" = 'epoch';
  DELETE FROM usage_slot WHERE slot >= (SELECT date_trunc('day', min(started_at), 'UTC') FROM request_log);
  DELETE FROM usage_day WHERE slot >= (SELECT date_trunc('day', min(started_at), 'UTC') FROM request_log);
  COMMIT`;

await main(async () => {
  const { rows, days, teams, yes } = options();
  if (!yes && !process.env.DATABASE_URL?.trim()) await mustBeMeant(rows, teams);
  await prepare();
  const load = (path) => import(pathToFileURL(join(root, 'dist', 'src', path)).href);
  const { loadEnv } = await load('config/env.js');
  const { openDatabase } = await load('cli/open-database.js');
  const { migrate } = await load('database/migrate.js');
  const { default: pg } = await import('pg');

  const env = loadEnv();
  const database = await openDatabase(env, console.log);
  const client = new pg.Client({ connectionString: database.url });
  try {
    await migrate(database.url);
    await client.connect();
    const now = Date.now();
    const { teamIds, keyIds } = await callers(client, teams);
    const models = await modelsOf(client, env.providerUrl !== undefined);
    console.log(
      `Calls of ${keyIds.length} keys to ${new Set(models.map(({ provider }) => provider)).size} providers ...`,
    );
    await client.query("SET synchronous_commit = off; SET maintenance_work_mem = '256MB'");
    const begin = now - days * DAY_MS;
    const msOf = (row) => Math.floor(begin + row * apart);
    const apart = (days * DAY_MS) / rows;
    const run = randomUUID();
    const startedAt = performance.now();
    for (let last = rows; last > 0;) {
      const day = dayOf(msOf(last));
      let first = Math.max(1, Math.floor((day - begin) / apart));
      while (msOf(first) < day) first++;
      await inDay(load, client, day, async (table) => {
        for (let from = first; from <= last; from += CHUNK)
          await client.query(insertInto(table), [
            begin,
            apart,
            from,
            Math.min(from + CHUNK - 1, last),
            keyIds,
            teamIds,
            run,
            ...['provider', 'model', 'input', 'cached', 'output', 'id'].map((name) =>
              models.map((one) => one[name]),
            ),
          ]);
      });
      const done = rows - first + 1;
      const seconds = (performance.now() - startedAt) / 1_000;
      console.log(`  ${done} of ${rows} rows, ${Math.round(done / seconds)} rows/s`);
      last = first - 1;
    }
    console.log('Analyzing ...');
    await client.query(NOTE_CALLS);
    await client.query(ADD_UP_AGAIN);
    await client.query('VACUUM (ANALYZE) request_log');
    console.log('Done. Try: ./postern usage --group-by team,day --limit 10');
  } finally {
    await client.end();
    await database.close();
  }
  return 0;
});

function options() {
  const usage = 'Usage: npm run seed:log -- [--rows 1000000] [--days 30] [--teams <number>] [--yes]';
  try {
    const { values } = parseArgs({
      options: {
        rows: { type: 'string' },
        days: { type: 'string' },
        teams: { type: 'string' },
        yes: { type: 'boolean' },
      },
    });
    const number = (text, otherwise, most) => {
      const value = text === undefined ? otherwise : Number(text);
      if (!Number.isInteger(value) || value < 1 || value > most) throw new Error();
      return value;
    };
    return {
      rows: number(values.rows, 1_000_000, 1e9),
      days: number(values.days, 30, 3_650),
      teams: values.teams === undefined ? undefined : number(values.teams, 1, 1_000),
      yes: values.yes === true,
    };
  } catch {
    throw new StepError(usage, 1);
  }
}

/** @throws StepError unless a person agrees */
async function mustBeMeant(rows, teams) {
  const own = teams === undefined ? '' : ` and ${teams} teams`;
  const what = `This adds ${rows} made-up calls${own} to the gateway's own database, for good.`;
  const remedy = 'Add --yes to do it, or set DATABASE_URL to a database to be thrown away.';
  if (!process.stdin.isTTY) throw new StepError(`${what} ${remedy}`, 1);
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    const ended = new Promise((resolve) => terminal.once('close', () => resolve('')));
    const answer = await Promise.race([terminal.question(`${what} Continue? [y/N] `), ended]);
    if (!/^\s*y(es)?\s*$/i.test(answer)) throw new StepError(`Nothing was written. ${remedy}`, 1);
  } finally {
    terminal.close();
  }
}

function dayOf(ms) {
  return Math.floor(ms / DAY_MS) * DAY_MS;
}

/**
 * Fills a day in one transaction. A day without a partition gets one that is filled first and attached then: Postgres
 * builds its indexes at once, which takes a third of the time that adding to them row by row takes.
 *
 * @param fill gets the table to fill
 */
async function inDay(load, client, day, fill) {
  const { listPartitions, tableName } = await load('request-log/partitions.js');
  const { ADVISORY_LOCKS } = await load('database/advisory-locks.js');
  const isThere = (await listPartitions(client)).some(({ from, to }) => from < day + DAY_MS && day < to);
  await client.query('BEGIN');
  if (isThere) {
    await fill('request_log');
  } else {
    const table = tableName(day);
    await client.query(`CREATE TABLE ${table} (LIKE request_log INCLUDING ALL EXCLUDING INDEXES)`);
    await fill(table);
    await client.query(`
      SELECT pg_advisory_xact_lock(${ADVISORY_LOCKS.partitions});
      ALTER TABLE request_log ATTACH PARTITION ${table}
        FOR VALUES FROM (to_timestamp(${day / 1_000})) TO (to_timestamp(${(day + DAY_MS) / 1_000}))`);
  }
  await client.query('COMMIT');
}

/** The keys that work, with their teams; own ones where there are none, or if a number of teams is given. */
async function callers(client, teams) {
  if (teams === undefined) {
    const { rows } = await client.query(
      `SELECT id, team_id FROM gateway_key WHERE revoked_at IS NULL AND NOT disabled ORDER BY id LIMIT ${MAX_KEYS}`,
    );
    if (rows.length > 0)
      return { keyIds: rows.map(({ id }) => id), teamIds: rows.map(({ team_id }) => team_id) };
  }
  return makeKeys(client, teams ?? TEAMS);
}

/** Some priced models of each provider; of a provider without price list, one without a price. */
async function modelsOf(client, hasDefault) {
  const { rows: providers } = await client.query(
    'SELECT name, catalog FROM provider WHERE enabled ORDER BY is_default DESC, name',
  );
  if (hasDefault || providers.length === 0) providers.unshift({ name: 'default', catalog: 'openai' });
  const models = [];
  for (const { name, catalog } of providers) {
    const { rows } = await client.query(
      `SELECT * FROM (
         SELECT DISTINCT ON (model) model, id, input, coalesce(cached_input, input) AS cached, output FROM price
         WHERE catalog = $1 AND model !~ '[*]' AND input IS NOT NULL AND output IS NOT NULL AND tiers IS NULL
           AND effective_from <= now() - interval '1 month'
         ORDER BY model, effective_from DESC) AS priced
       ORDER BY array_position($2::text[], model) NULLS LAST, model LIMIT $3`,
      [catalog, MODELS, MODELS_PER_PROVIDER],
    );
    const none = { model: `model-of-${name}`, id: null, input: null, cached: null, output: null };
    models.push(...(rows.length > 0 ? rows : [none]).map((row) => ({ provider: name, ...row })));
  }
  return models;
}

async function makeKeys(client, teams) {
  const { v7: uuidv7 } = await import('uuid');
  const teamIds = [];
  const keyIds = [];
  for (let i = 0; i < teams; i++) {
    const team = await client.query(
      'INSERT INTO team (id, name) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET name = EXCLUDED.name RETURNING id',
      [uuidv7(), `seed team ${i + 1}`],
    );
    teamIds.push(team.rows[0].id);
  }
  for (let i = 0; i < teams * KEYS_PER_TEAM; i++) {
    const key = await client.query(
      `INSERT INTO gateway_key (id, team_id, name) VALUES ($1, $2, $3)
       ON CONFLICT (team_id, name) DO UPDATE SET name = EXCLUDED.name RETURNING id`,
      [uuidv7(), teamIds[i % teams], `seed key ${i + 1}`],
    );
    keyIds.push(key.rows[0].id);
  }
  return { teamIds: keyIds.map((_, i) => teamIds[i % teams]), keyIds };
}
