// `npm run measure:log`: how a gateway does with the log that is there, after `npm run seed:log -- --rows 50000000`. It
// prints one line for each question: what people wait for, and what it may take. In a database to be thrown away, which
// DATABASE_URL names: it also reverts and repeats the last migrations of the log, and drops its oldest day.
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { ENTRY, NODE_FLAGS } from './child.mjs';
import { main, prepare, root, StepError } from './prepare.mjs';

const TOKEN = 'measure-request-log-0123456789';
const SAMPLES = 20;
const EXPORTED_ROWS = 200_000;
const READY_MS = 600_000;
/** The first migration to repeat: it adds columns to the log. */
const REPEATED_FROM = 'RequestLogAttempts';
const HOUR_MS = 3_600_000;
const MONTH_MS = 31 * 24 * HOUR_MS;
/** What the documentation promises, in milliseconds. */
const PROMISES = { page: 50, month: 200 };

await main(async () => {
  const url = process.env.DATABASE_URL?.trim();
  if (!url)
    throw new StepError('Set DATABASE_URL to a database to be thrown away, filled by npm run seed:log.', 1);
  await prepare();
  const load = (path) => import(pathToFileURL(join(root, 'dist', 'src', path)).href);
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const ask = async (text, values) => (await client.query(text, values)).rows;
  try {
    await size(ask);
    await migrations(load, url, ask);
    await questions(url, ask);
    await partitions(load, client, ask);
  } finally {
    await client.end();
  }
  return 0;
});

function report(what, value, promise) {
  console.log(`${what.padEnd(54)} ${value}${promise === undefined ? '' : ` (promised: ${promise})`}`);
}

async function size(ask) {
  const [{ rows, table, indexes, days }] = await ask(`
    SELECT sum(c.reltuples)::bigint::text AS rows, sum(pg_table_size(c.oid))::float8 AS table,
           sum(pg_indexes_size(c.oid))::float8 AS indexes, count(*) FILTER (WHERE c.reltuples > 0) AS days
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'request_log'::regclass`);
  report('rows', `${rows} in ${days} days`);
  const gigabytes = (bytes) => (bytes / 1e9).toFixed(1);
  report('disk, table + indexes', `${gigabytes(table)} + ${gigabytes(indexes)} GB`);
  report('bytes of a row, with indexes', Math.round((table + indexes) / Number(rows)));
}

/** What a rolling upgrade waits for: the new release migrates while the old one writes. */
async function migrations(load, url, ask) {
  const { migrate } = await load('database/migrate.js');
  const { dataSourceOptions } = await load('database/data-source-options.js');
  const { DataSource } = await import('typeorm');
  await migrate(url);
  const source = new DataSource(dataSourceOptions(url, { applicationName: 'measure', poolSize: 2 }));
  await source.initialize();
  const reverted = [];
  for (;;) {
    const [{ name }] = await source.query('SELECT name FROM migrations ORDER BY id DESC LIMIT 1');
    await source.undoLastMigration({ transaction: 'each' });
    reverted.push(name);
    if (name.startsWith(REPEATED_FROM)) break;
  }
  const writing = writeRows(source);
  const startedAt = performance.now();
  await migrate(url);
  report(`${reverted.length} migrations, one of the log's columns`, ms(performance.now() - startedAt));
  report('longest wait of a writer meanwhile', ms(await writing()));
  await source.destroy();
}

/** Writes rows as the log writer of another replica does. @returns ends it; resolves with the longest INSERT, in ms */
function writeRows(source) {
  let isOver = false;
  let longest = 0;
  const INSERT = `
    INSERT INTO request_log (started_at, id, team_id, key_id, provider, method, streamed, outcome)
    SELECT date_trunc('milliseconds', now()), gen_random_uuid(), team_id, id, 'default', 'POST', false, 'completed'
    FROM gateway_key LIMIT 1`;
  const work = (async () => {
    while (!isOver) {
      const startedAt = performance.now();
      await source.query(INSERT);
      longest = Math.max(longest, performance.now() - startedAt);
      await sleep(5);
    }
  })();
  return async () => {
    isOver = true;
    await work;
    return longest;
  };
}

async function questions(url, ask) {
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-measure-'));
  const env = { PATH: process.env.PATH, PORT: '0', DATABASE_URL: url, DATA_DIR: dataDir, ADMIN_TOKEN: TOKEN };
  const gateway = spawn(process.execPath, [...NODE_FLAGS, join(root, ENTRY)], {
    env: { ...env, REQUEST_LOG_RETENTION_DAYS: '3650', LOG_LEVEL: 'info' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = new Promise((resolve) => gateway.once('exit', resolve));
  try {
    const api = apiOf(await addressOf(gateway));
    await rollup(ask);
    // The newest row is as old as the seed.
    const [{ newest }] = await ask(`
      SELECT max(started_at) AS newest FROM request_log WHERE key_id IN (SELECT id FROM gateway_key WHERE name LIKE 'seed key %')`);
    const to = newest.getTime() + 1;
    const range = (length) => `from=${new Date(to - length).toISOString()}&to=${new Date(to).toISOString()}`;
    const keys = await ask(
      `SELECT id FROM gateway_key WHERE name LIKE 'seed key %' ORDER BY id LIMIT ${SAMPLES}`,
    );
    const pages = keys.map(({ id }) => `requests?key=${id}&${range(HOUR_MS)}&limit=50`);
    report(
      "a page of a key's last hour: fastest, median, longest",
      await timed(api, pages),
      `${PROMISES.page} ms`,
    );
    const teams = await ask(`SELECT id FROM team WHERE name LIKE 'seed team %' LIMIT ${SAMPLES}`);
    const day = new Date(to - MONTH_MS).toISOString().slice(0, 10);
    const months = teams.map(({ id }) => `usage?team=${id}&group_by=model,day&from=${day}T00:00:00Z`);
    report(
      "a team's month by model and day, from roll-ups: the same",
      await timed(api, months),
      `${PROMISES.month} ms`,
    );
    await exported(api, range(MONTH_MS));
  } finally {
    gateway.kill('SIGTERM');
    await exited;
    await rm(dataDir, { recursive: true, force: true });
  }
}

async function addressOf(gateway) {
  let text = '';
  gateway.stdout.on('data', (chunk) => (text += chunk));
  for (const deadline = Date.now() + READY_MS; Date.now() < deadline; await sleep(200)) {
    const found = /http:\/\/127\.0\.0\.1:\d+/.exec(text);
    const ready = found && (await fetch(`${found[0]}/health/ready`).catch(() => null));
    if (ready?.ok) return found[0];
  }
  throw new StepError(`The gateway did not get ready:\n${text}`, 1);
}

function apiOf(address) {
  return async (path) => {
    const response = await fetch(`${address}/admin/v1/${path}`, {
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response;
  };
}

/** The gateway adds up all rows that were seeded. */
async function rollup(ask) {
  const startedAt = performance.now();
  for (;;) {
    const [{ lag }] = await ask(
      'SELECT extract(epoch FROM now() - "cursor")::float8 AS lag FROM usage_rollup',
    );
    if (lag < 60) break;
    if (performance.now() - startedAt > READY_MS * 3)
      throw new StepError('The roll-up did not get ready.', 1);
    await sleep(1_000);
  }
  report('roll-up of all rows, from the beginning', ms(performance.now() - startedAt));
}

/**
 * Each path twice, so that the first look at a page of the disk does not decide.
 *
 * @returns the fastest, the median and the longest: on a machine that is busy with other things, the fastest counts
 */
async function timed(api, paths) {
  const times = [];
  for (const path of [...paths, ...paths]) {
    const startedAt = performance.now();
    await (await api(path)).arrayBuffer();
    times.push(performance.now() - startedAt);
  }
  times.sort((a, b) => a - b);
  return [times[0], times[Math.floor(times.length / 2)], times.at(-1)].map(ms).join(', ');
}

async function exported(api, range) {
  const startedAt = performance.now();
  const response = await api(`requests/export?format=ndjson&${range}&limit=${EXPORTED_ROWS}`);
  let rows = 0;
  let firstAt = null;
  for await (const chunk of response.body) {
    firstAt ??= performance.now();
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) rows++;
  }
  const seconds = (performance.now() - firstAt) / 1_000;
  report('export, first byte', ms(firstAt - startedAt));
  report(`export of ${rows} rows`, `${Math.round(rows / seconds)} rows/s`);
}

async function partitions(load, client, ask) {
  const { createDaysAhead, DAY_MS, dayOf, dropExpired, listPartitions } =
    await load('request-log/partitions.js');
  let startedAt = performance.now();
  const made = await createDaysAhead(client);
  report(`partitions of the next days (${made.length})`, ms(performance.now() - startedAt));
  const [oldest] = await listPartitions(client);
  const [{ rows }] = await ask(
    'SELECT reltuples::bigint::text AS rows FROM pg_class WHERE oid = $1::regclass',
    [oldest.table],
  );
  startedAt = performance.now();
  const now = Date.now();
  const days = (dayOf(now) - oldest.to) / DAY_MS;
  const { tables } = await dropExpired(client, {
    now,
    days,
    stopped: () => false,
    isNeeded: async () => false,
  });
  if (tables.length !== 1) throw new Error(`${tables.length} partitions were dropped`);
  report(`drop of the oldest day (${rows} rows)`, ms(performance.now() - startedAt));
}

function ms(value) {
  return value < 10_000 ? `${value.toFixed(value < 10 ? 1 : 0)} ms` : `${(value / 1_000).toFixed(0)} s`;
}
