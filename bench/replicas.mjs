// `npm run bench:replicas`: many gateways on one Postgres, without their HTTP side. What is measured is Postgres and the
// code of this build that speaks with it; see replicas/replicas.mjs.
import { fork } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { v7 as uuidv7 } from 'uuid';
import { migrate } from '../dist/src/database/migrate.js';
import { createPartitions } from '../dist/src/request-log/partitions.js';
import { treeMicros } from './cpu-time.mjs';
import { withWorkplace } from './lifetime.mjs';

const HELP = `Usage: npm run bench:replicas -- [options]

Replicas of Postern that share one budget in one Postgres: the ledger of limits, the log writer, the journal in memory and
the change feed of each, with connections of its own. Says whether the budget holds, and what it costs.

  --replicas N     (100)
  --processes N    of the operating system that they share (2)
  --seconds N      for which calls come (60)
  --calls N        a second and replica (10)
  --call-ms N      mean duration of a call (1000)
  --rank N         of the budget: 0, of a team; 2, of the installation (2)
  --budget USD     0: so much that it does not end (0)
  --commit-ms N    how long Postgres waits before it makes a commit durable (5)`;

const { values } = parseArgs({
  options: {
    replicas: { type: 'string', default: '100' },
    processes: { type: 'string', default: '2' },
    seconds: { type: 'string', default: '60' },
    calls: { type: 'string', default: '10' },
    'call-ms': { type: 'string', default: '1000' },
    rank: { type: 'string', default: '2' },
    budget: { type: 'string', default: '0' },
    'commit-ms': { type: 'string', default: '5' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(HELP);
  process.exit(0);
}
const RANK = Number(values.rank);
const REPLICAS = Number(values.replicas);
const PROCESSES = Number(values.processes);
const SECONDS = Number(values.seconds);
/** Billionths of a dollar. What a call reserves, and between which it costs at random. */
const CALL = { reserved: 10_000_000, least: 1_000_000, most: 9_000_000 };
const ENDLESS = 10n ** 15n;
const BUDGET = values.budget === '0' ? ENDLESS : BigInt(Math.round(Number(values.budget) * 1e6)) * 1_000n;
const SAMPLE_MS = 50;
const MAX_MS = SECONDS * 1_000 + 300_000;

const LOGGED_MS = 5;

const SETTINGS = {
  max_connections: 5 * REPLICAS + 50,
  commit_delay: Number(values['commit-ms']) * 1_000,
  commit_siblings: 0,
  // Each wait for a lock that takes longer than this is logged, with its duration.
  deadlock_timeout: `${LOGGED_MS}ms`,
  log_lock_waits: 'on',
  log_line_prefix: '[%v %a] ',
};

await withWorkplace(MAX_MS, run, { postgresSettings: SETTINGS, isPinned: false });

async function run({ workplace, postgres }) {
  const { url } = await postgres.createDatabase();
  await migrate(url);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await createPartitions(client, [Date.now(), Date.now() + MAX_MS]);
  const teamId = uuidv7();
  await client.query(
    `INSERT INTO limit_rule (id, scope, scope_id, resource, period, amount, rank) VALUES ($1, 'team', $2, 'usd', 'total', $3, $4)`,
    [uuidv7(), teamId, String(BUDGET), RANK],
  );
  const workers = await startWorkers(workplace, url, teamId);
  const { length: logged } = await postgres.log();
  const before = await stateOf(client, postgres.pid);
  for (const worker of workers) worker.child.send('go');
  const waiting = await sampled(client, workers);
  const reports = await Promise.all(workers.map(({ report }) => report));
  const after = await stateOf(client, postgres.pid);
  const lockWaits = lockWaitsIn((await postgres.log()).slice(logged));
  await print(client, reports, before, after, waiting, lockWaits);
  await client.end();
}

async function startWorkers(workplace, databaseUrl, teamId) {
  const workers = [];
  for (let i = 0; i < PROCESSES; i++) {
    const replicas = Math.floor((REPLICAS + i) / PROCESSES);
    const child = fork(fileURLToPath(new URL('replicas/replicas.mjs', import.meta.url)));
    workplace.onClose(() => void child.kill('SIGKILL'));
    const next = () =>
      new Promise((resolve, reject) => {
        child.once('message', resolve);
        child.once('exit', (code) => reject(new Error(`replicas ended with status ${code}`)));
      });
    const ready = next();
    child.send({
      databaseUrl,
      // The journals of a hundred replicas have disks of their own; here they would share one.
      folder: await journals(workplace, i),
      replicas,
      isHot: RANK > 0,
      seconds: SECONDS,
      callsPerSecond: Number(values.calls),
      callMs: Number(values['call-ms']),
      teamId,
      keyId: uuidv7(),
      ...CALL,
    });
    await ready;
    workers.push({ child, report: next() });
  }
  return workers;
}

async function journals(workplace, i) {
  const folder = await mkdtemp(`/dev/shm/postern-replicas-${i}-`);
  workplace.onClose(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Samples until all have reported: how many sessions wait for a lock of a row, and what for. */
async function sampled(client, workers) {
  let ended = false;
  void Promise.allSettled(workers.map(({ report }) => report)).then(() => (ended = true));
  const samples = { count: 0, waiting: 0, most: 0, byQuery: {} };
  while (!ended) {
    const { rows } = await client.query(
      `SELECT left(regexp_replace(query, '\\s+', ' ', 'g'), 40) AS query, count(*)::int AS count
       FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database() GROUP BY 1`,
    );
    const waiting = rows.reduce((sum, { count }) => sum + count, 0);
    samples.count++;
    samples.waiting += waiting;
    samples.most = Math.max(samples.most, waiting);
    for (const { query, count } of rows) samples.byQuery[query] = (samples.byQuery[query] ?? 0) + count;
    await sleep(SAMPLE_MS);
  }
  return samples;
}

/**
 * How long each exchange has waited for locks, in milliseconds, of those that waited for one for longer than LOGGED_MS.
 * One that gave up, after the lock_timeout of its session, has no duration: Infinity.
 */
function lockWaitsIn(log) {
  const waits = new Map();
  const open = new Set();
  // The virtual transaction: an exchange is one.
  const line =
    /^\[(\S+) postern-limits\] LOG: {2}process \d+ (still waiting for|acquired) \w+ on .* after ([\d.]+) ms$/gm;
  for (const [, exchange, state, ms] of log.matchAll(line)) {
    if (state !== 'acquired') {
      open.add(exchange);
      continue;
    }
    open.delete(exchange);
    waits.set(exchange, (waits.get(exchange) ?? 0) + Number(ms));
  }
  for (const exchange of open) waits.set(exchange, Infinity);
  return [...waits.values()].sort((a, b) => a - b);
}

async function stateOf(client, pid) {
  const { rows } = await client.query(
    `SELECT xact_commit::float8 AS commits, deadlocks::int, numbackends, pg_current_wal_lsn() - '0/0' AS wal
     FROM pg_stat_database WHERE datname = current_database()`,
  );
  return { ...rows[0], wal: Number(rows[0].wal), at: performance.now(), micros: treeMicros(pid) };
}

async function print(client, reports, before, after, waiting, lockWaits) {
  const sum = (name) => reports.reduce((total, report) => total + report[name], 0);
  const all = (name) => reports.flatMap((report) => report[name]).sort((a, b) => a - b);
  const seconds = (after.at - before.at) / 1_000;
  const { rows } = await client.query(
    `SELECT count(*)::int AS rows, COALESCE(sum(charge_usd) * 1000000000, 0)::bigint::text AS charged,
            ((SELECT spent FROM limit_meter) + COALESCE((SELECT sum(spent) FROM limit_spent), 0))::text AS spent, (SELECT held FROM limit_meter)::text AS held
     FROM request_log`,
  );
  const { rows: count, charged, spent, held } = rows[0];
  const durations = reports.flatMap((report) => report.durations);
  const waits = all('waits');
  const exchanges = sum('exchanges');
  const line = (name, text) => console.log(`${name.padEnd(30)}${text}`);
  line('replicas', `${REPLICAS} in ${PROCESSES} processes, ${seconds.toFixed(0)} s`);
  line('calls', `${sum('admitted')} admitted, ${sum('rejected')} rejected, ${sum('failed')} failed`);
  for (const [message, times] of Object.entries(Object.assign({}, ...reports.map(({ errors }) => errors))))
    line('', `${times} × ${message}`);
  line('rows', `${count} (${count === sum('admitted') ? 'equal' : 'NOT EQUAL'})`);
  line(
    'charged in the log',
    `${usd(charged)} USD; spent ${usd(spent)} (${charged === spent ? 'equal' : 'NOT EQUAL'}), held ${usd(held)}`,
  );
  line(
    'above the budget',
    BUDGET === ENDLESS
      ? 'it has no end'
      : `${usd(String(BigInt(charged) > BUDGET ? BigInt(charged) - BUDGET : 0n))} of ${usd(String(BUDGET))} USD`,
  );
  line('wait for admission, ms', `p50 ${at(waits, 0.5)}, p99 ${at(waits, 0.99)}, most ${at(waits, 1)}`);
  const rejected = all('rejectedAfter');
  if (rejected.length > 0)
    line(
      'wait for rejection, ms',
      `p50 ${at(rejected, 0.5)}, p99 ${at(rejected, 0.99)}, most ${at(rejected, 1)}`,
    );
  line('exchanges', `${exchanges} (${(exchanges / seconds).toFixed(0)}/s), ${sum('failedExchanges')} failed`);
  line(
    'exchange, ms at most',
    `p50 ${bound(durations, 0.5)}, p90 ${bound(durations, 0.9)}, p99 ${bound(durations, 0.99)}`,
  );
  // Those that are not logged are shown as 0.
  const locks = [...Array(Math.max(exchanges - lockWaits.length, 0)).fill(0), ...lockWaits];
  const givenUp = lockWaits.filter((ms) => ms === Infinity).length;
  line(
    'exchange waits for locks, ms',
    `p50 ${at(locks, 0.5)}, p99 ${at(locks, 0.99)} of ${exchanges} exchanges; ${lockWaits.length} over ${LOGGED_MS} ms (p50 ${at(lockWaits, 0.5)}), ${givenUp} given up`,
  );
  line(
    'sessions waiting for locks',
    `${(waiting.waiting / waiting.count).toFixed(2)} on average, most ${waiting.most}`,
  );
  for (const [query, times] of Object.entries(waiting.byQuery))
    line('', `${(times / waiting.count).toFixed(2)} in ${query}`);
  line('deadlocks', String(after.deadlocks - before.deadlocks));
  line('connections', String(before.numbackends));
  line('transactions', `${((after.commits - before.commits) / seconds).toFixed(0)}/s`);
  line('WAL', `${((after.wal - before.wal) / seconds / 1e6).toFixed(2)} MB/s`);
  line(
    'Postgres',
    `${((after.micros - before.micros) / sum('admitted')).toFixed(0)} µs of processor time a call`,
  );
  line('last rows after', `${(Math.max(...reports.map(({ stopMs }) => stopMs)) / 1_000).toFixed(1)} s`);
}

function usd(nano) {
  return (Number(nano) / 1e9).toFixed(3);
}

function at(sorted, part) {
  if (sorted.length === 0) return '–';
  return sorted[Math.min(Math.floor(sorted.length * part), sorted.length - 1)].toFixed(1);
}

/** Upper bound of the bucket of a histogram over all replicas. */
function bound(durations, part) {
  const { bounds } = durations[0];
  const counts = durations.map(({ counts }) => Object.values(counts));
  const total = counts.flat().reduce((sum, count) => sum + count, 0);
  let seen = 0;
  for (let i = 0; i <= bounds.length; i++) {
    seen += counts.reduce((sum, each) => sum + each[i], 0);
    if (seen >= total * part)
      return i < bounds.length ? String(bounds[i] * 1_000) : `over ${bounds.at(-1) * 1_000}`;
  }
}
