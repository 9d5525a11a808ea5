// `npm run bench:fleet -- [CHECKOUT]`: what many gateways ask of one Postgres, idle or under load. They are whole gateways of a
// built checkout.
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { ADMIN_TOKEN, createIn } from './contenders/keyed.mjs';
import { startArgs } from './contenders/postern.mjs';
import { treeMicros } from './cpu-time.mjs';
import { withWorkplace } from './lifetime.mjs';
import { openLoop } from './load/open-loop.mjs';
import { chatRequest } from './load/request.mjs';
import { startProvider } from './provider/provider.mjs';
import { percentile } from './statistics.mjs';
import { root } from './workplace.mjs';

const HELP = `Usage: npm run bench:fleet -- [options] [CHECKOUT]

Starts gateways of a built checkout (this one) that share one Postgres, and says for each what it asks of it while nobody
calls: statements, new connections, connections, and processor time of Postgres. With --calls, what a call costs Postgres.

  --gateways N   (3)
  --seconds N    for which they are watched; some work is done once a minute (60)
  --calls N      calls a second of all gateways together (0)
  --keys N       keys that call in turn (1000)
  --limited N    of these keys, how many have a limit of calls and budgets of tokens and USD (0)
  --node PATH    the Node.js to run them with (this one)`;
const SETTLE_MS = 20_000;
const SAMPLE_MS = 250;
const MAX_MS = 1_200_000;
const CONNECTIONS = 4;
const PRICE = { catalog: 'default', model: 'gpt-4o-mini', input: '0.15', output: '0.6' };
const LIMITS = {
  limits: { requests_per_minute: 100_000 },
  budgets: [
    { tokens: 1_000_000_000, period: 'day' },
    { usd: '1000000', period: 'day' },
  ],
};
const SETTINGS = { max_connections: 2_000 };
/** Each statement is logged, with the purpose of its connection. */
const LOGGED = { log_statement: 'all', log_line_prefix: '[%a] ' };
const STATEMENT = /^\[postern\S*\] LOG: {2}(?:statement|execute [^:]*):/gm;
/** With which each connection begins. */
const BEGUN = /SELECT set_config\(name, value, false\)/g;
const COUNT = `
  SELECT application_name AS purpose, count(*)::int AS count,
         count(*) FILTER (WHERE wait_event_type = 'Lock')::int AS locked
  FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'postern%' GROUP BY 1`;

const TOTALS = `
  SELECT xact_commit::int + xact_rollback::int AS transactions, deadlocks::int,
         pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS wal
  FROM pg_stat_database WHERE datname = current_database()`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    gateways: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '60' },
    calls: { type: 'string', default: '0' },
    keys: { type: 'string', default: '1000' },
    limited: { type: 'string', default: '0' },
    node: { type: 'string', default: process.execPath },
    help: { type: 'boolean', default: false },
  },
});
if (values.help || positionals.length > 1) {
  console.log(HELP);
  process.exit(values.help ? 0 : 1);
}
const GATEWAYS = Number(values.gateways);
const CALLS = Number(values.calls);
const MASTER_KEY = Buffer.alloc(32, 7).toString('base64');

// With calls, the log of statements would cost more than they do.
const postgresSettings = CALLS === 0 ? { ...LOGGED, ...SETTINGS } : SETTINGS;
await withWorkplace(MAX_MS, run, { postgresSettings, isPinned: false });

async function run({ workplace, postgres }) {
  const database = await postgres.createDatabase();
  const provider = await startProvider(workplace);
  const ports = [await startGateway(workplace, 'gateway-1', database.url, provider.port)];
  // Before the others start, which then read them all: a key that is created later is looked up by each gateway at its first call.
  const keys = CALLS === 0 ? [] : await createKeys(ports[0]);
  for (let i = 2; i <= GATEWAYS; i++)
    ports.push(await startGateway(workplace, `gateway-${i}`, database.url, provider.port));
  const calls = CALLS === 0 ? null : callsOf(ports, keys);
  await sleep(SETTLE_MS);
  const client = new pg.Client({ connectionString: database.url, application_name: 'bench' });
  await client.connect();
  const { length: logged } = await postgres.log();
  const before = { at: performance.now(), micros: treeMicros(postgres.pid), ...(await counted(client)) };
  const called = calls?.(Number(values.seconds) * 1_000);
  const connections = await sampled(client);
  const load = await called;
  const seconds = (performance.now() - before.at) / 1_000;
  const rows = load && (await database.settledRows(load.calls));
  const micros = treeMicros(postgres.pid) - before.micros;
  const after = await counted(client);
  const log = (await postgres.log()).slice(logged);
  await client.end();
  const each = (sum, digits = 1) => (sum / GATEWAYS).toFixed(digits);
  const line = (name, text) => console.log(`${name.padEnd(26)}${text}`);
  line('gateways', String(GATEWAYS));
  if (load) {
    const ms = (share) => percentile(load.latencies, share).toFixed(1);
    line('calls, rows', `${load.calls}, ${rows}; ${(load.calls / seconds).toFixed(0)} a second`);
    line('ms from when it was due', `p50 ${ms(0.5)}, p99 ${ms(0.99)}`);
    line('Postgres', `${(micros / load.calls).toFixed(1)} µs of processor time a call`);
    line('WAL', `${((after.wal - before.wal) / load.calls).toFixed(0)} bytes a call`);
    line('deadlocks', String(after.deadlocks - before.deadlocks));
    line('connections that waited', `for a lock: ${(100 * connections.locked).toFixed(2)} % of them`);
  } else {
    line('each: statements a second', each((log.match(STATEMENT) ?? []).length / seconds, 2));
    line('new connections a minute', each(((log.match(BEGUN) ?? []).length / seconds) * 60));
    line(
      'Postgres',
      `${each(micros / seconds / 1e4, 2)} % of a core, with what the log and the samples take`,
    );
  }
  line('transactions a second', each((after.transactions - before.transactions) / seconds, 2));
  line('connections', `${each(connections.sum / connections.samples)}, at most ${each(connections.most)}`);
  line('most of all gateways', JSON.stringify(connections.byPurpose));
}

async function startGateway(workplace, name, url, provider) {
  const { flags, entry } = startArgs(resolve(positionals[0] ?? root));
  const { found } = await workplace.start([values.node, ...flags, entry], {
    name,
    cores: workplace.cores.gateway,
    ready: (text) => {
      const ready = /ready on http:\/\/127\.0\.0\.1:(\d+)\n/.exec(text);
      return ready && { port: Number(ready[1]) };
    },
    env: {
      PORT: '0',
      DATA_DIR: join(workplace.folder, name),
      DATABASE_URL: url,
      MASTER_KEY,
      ADMIN_TOKEN,
      PROVIDER_URL: `http://127.0.0.1:${provider}`,
      PROVIDER_KEY: 'sk-provider',
      LOG_LEVEL: 'warn',
    },
  });
  return found.port;
}

/** @returns the keys */
async function createKeys(port) {
  await createIn({ port }, 'prices', PRICE);
  const keys = [];
  for (let i = 0; i < Number(values.keys); i++) {
    const limits = i < Number(values.limited) ? LIMITS : {};
    keys.push((await createIn({ port }, 'keys', { team: 'default', name: `bench ${i}`, ...limits })).key);
  }
  return keys;
}

/** @returns what calls the gateways in turn, each time with the next key, for some milliseconds */
function callsOf(ports, keys) {
  const requests = keys.map((key) =>
    chatRequest({ port: ports[0], headers: { Authorization: `Bearer ${key}` } }),
  );
  let next = 0;
  const request = () => requests[next++ % requests.length];
  const connections = ports.length * CONNECTIONS;
  return (forMs) => openLoop({ port: ports, request, ratePerSecond: CALLS, connections, forMs });
}

async function counted(client) {
  return (await client.query(TOTALS)).rows[0];
}

async function sampled(client) {
  const found = { samples: 0, sum: 0, most: 0, locked: 0, byPurpose: {} };
  const until = performance.now() + Number(values.seconds) * 1_000;
  for (; performance.now() < until; await sleep(SAMPLE_MS)) {
    const { rows } = await client.query(COUNT);
    const open = rows.reduce((sum, { count }) => sum + count, 0);
    found.samples++;
    found.sum += open;
    found.most = Math.max(found.most, open);
    for (const { purpose, count, locked } of rows) {
      found.byPurpose[purpose] = Math.max(found.byPurpose[purpose] ?? 0, count);
      found.locked += locked;
    }
  }
  found.locked /= found.sum;
  return found;
}
