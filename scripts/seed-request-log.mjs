// `npm run seed:log -- --rows 5000000 --days 30`: a request log to try queries on. It makes teams and keys named
// "seed …" (keys without a secret: nobody can call with them) and rows spread over the days up to now, in the database
// of DATABASE_URL, else the embedded one. Only adds; a database to be thrown away is the right place. It asks before it
// writes into any other than one that DATABASE_URL names for this command; `--yes` does without. Each day is one
// transaction, the newest day first: after an interruption the log has whole days.
import { parseArgs } from 'node:util';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { pathToFileURL } from 'node:url';
import { main, prepare, root, StepError } from './prepare.mjs';

const CHUNK = 50_000;
const KEYS_PER_TEAM = 10;
const DAY_MS = 86_400_000;

/** One chunk: rows at even distances from $1 on (Unix ms), $2 ms apart, numbered $3 to $4, for the keys and teams $5, $6; $7: of this run. */
const insertInto = (table) => `
  INSERT INTO ${table} (started_at, id, recorded_at, team_id, key_id, provider, method, path, model, streamed, status,
    outcome, error_code, request_bytes, response_bytes, ttfb_ms, duration_ms, prompt_tokens, completion_tokens,
    cached_tokens, reasoning_tokens, cost_usd, provider_request_id, sdk_retry_count, client_ip, user_agent)
  SELECT to_timestamp(ms / 1000.0),
    -- A UUIDv7: 48 bits of Unix milliseconds, the version, the variant, and other bits (RFC 9562 5.7). gen_random_uuid()
    -- takes longer than the rest of the row.
    (hex || '7' || substr(digest, 1, 3) || '8' || substr(digest, 4, 15))::uuid,
    to_timestamp((ms + 20 + floor(slow * 1000)) / 1000.0),
    ($6::uuid[])[(k % array_length($6::uuid[], 1)) + 1], ($5::uuid[])[k + 1],
    'default', 'POST', '/v1/chat/completions',
    (ARRAY['gpt-4o-mini', 'gpt-4o', 'o4-mini', 'claude-sonnet-4', 'gemini-2.5-flash'])[1 + floor(power(lot, 2) * 5)::int],
    lot < 0.6,
    CASE WHEN lot < 0.95 THEN 200 WHEN lot < 0.98 THEN 429 WHEN lot < 0.99 THEN 500 END::smallint,
    CASE WHEN lot < 0.99 THEN 'completed' ELSE 'client_aborted' END,
    NULL, 400 + floor(lot * 4000), 300 + floor(slow * 9000), 80 + slow * 200, 100 + slow * 4000,
    CASE WHEN lot < 0.95 THEN 50 + floor(lot * 1500)::int END, CASE WHEN lot < 0.95 THEN 20 + floor(slow * 800)::int END,
    NULL, NULL,
    -- USD 0.15 and 0.60 per million tokens, as if the provider had reported the cost.
    CASE WHEN lot < 0.95 THEN ((50 + floor(lot * 1500)) * 150 + (20 + floor(slow * 800)) * 600)::int * 0.000000001 END,
    'req_' || substr(digest, 1, 24), 0, '203.0.113.7', 'OpenAI/JS 6.49.0'
  FROM (
    SELECT i, k, lot, slow, ms, lpad(to_hex(ms), 12, '0') AS hex, md5($7 || i::text) AS digest FROM (
      -- The cube: a few keys make most of the calls.
      SELECT i, floor(power(random(), 3) * array_length($5::uuid[], 1))::int AS k, random() AS lot, random() AS slow,
        floor($1::float8 + i * $2::float8)::bigint AS ms
      FROM generate_series($3::bigint, $4::bigint) AS i) AS lots) AS row`;

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

  const database = await openDatabase(loadEnv(), console.log);
  const client = new pg.Client({ connectionString: database.url });
  try {
    await migrate(database.url);
    await client.connect();
    const now = Date.now();
    const { teamIds, keyIds } = await makeKeys(client, teams);
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
          ]);
      });
      const done = rows - first + 1;
      const seconds = (performance.now() - startedAt) / 1_000;
      console.log(`  ${done} of ${rows} rows, ${Math.round(done / seconds)} rows/s`);
      last = first - 1;
    }
    console.log('Analyzing ...');
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
  const usage = 'Usage: npm run seed:log -- [--rows 1000000] [--days 30] [--teams 20] [--yes]';
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
      teams: number(values.teams, 20, 1_000),
      yes: values.yes === true,
    };
  } catch {
    throw new StepError(usage, 1);
  }
}

/** @throws StepError unless a person agrees */
async function mustBeMeant(rows, teams) {
  const what = `This adds ${rows} made-up calls and ${teams} teams to the gateway's own database, for good.`;
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
  return { teamIds, keyIds };
}
