// `npm run bench:tokens`: what issued tokens cost. How much longer does a start take with many live tokens, how long do the
// lists of keys and trusts take then, what does a cached token hold, how fast are tokens issued, and do other calls notice?
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { startArgs } from './contenders/postern.mjs';
import { treeMicros } from './cpu-time.mjs';
import { withWorkplace } from './lifetime.mjs';
import { openLoop } from './load/open-loop.mjs';
import { chatRequest, delayedRequest } from './load/request.mjs';
import { describeMachine } from './machine.mjs';
import { residentBytes } from './memory.mjs';
import { startNodeProvider } from './provider/node.mjs';
import { startProvider } from './provider/provider.mjs';
import { median, percentile, ratios } from './statistics.mjs';
import { callOnceEach } from './tokens/calls.mjs';
import { Identities, startIssuing } from './tokens/issuing.mjs';
import { createTrusts, insertKnownTokens, insertTokens } from './tokens/stored.mjs';
import { root } from './workplace.mjs';

const HELP = `Usage: npm run bench:tokens -- [options]

Two databases with the same keys and trusts, one of them with many live tokens; then calls at a fixed rate, in interleaved
rounds with and without tokens being issued by exchange beside them.

  --tokens N   live tokens (100000)
  --trusts N   trusts that they are of, each with a key of its own (100)
  --starts N   starts of each, in turns (5)
  --rounds N   rounds of calls of each kind, in turns (8)
  --calls N    calls a second (200)
  --issue N    tokens that are issued a second (100)
  --delay MS   until the provider responds to a call (0; real ones take hundreds)
  --part NAME  only one of starts, lists, memory, issuing`;
const MAX_MS = 3_600_000;
const ROUND_MS = 5_000;
/** Until the keys have been loaded. */
const IDLE_MS = 5_000;
const CONNECTIONS = 64;
const LISTS = 100;
/** As many tokens as fit into the cache. */
const MAX_CACHED = 50_000;
const ADMIN_TOKEN = 'bench-tokens-0123456789abcdef0123456789';
const MASTER_KEY = Buffer.alloc(32, 7).toString('base64');

const number = (text) => ({ type: 'string', default: String(text) });
const { values } = parseArgs({
  options: {
    ...{ tokens: number(100_000), trusts: number(100), starts: number(5), rounds: number(8) },
    ...{
      calls: number(200),
      issue: number(100),
      delay: number(0),
      part: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  },
});
if (values.help) {
  console.log(HELP);
  process.exit(0);
}
const [tokens, trusts, starts, rounds, rate, issueRate, delayMs] = [
  ...[values.tokens, values.trusts, values.starts, values.rounds, values.calls, values.issue, values.delay],
].map(Number);
/** Of the first trust, and known here, to call with. */
const cached = Math.min(MAX_CACHED, tokens / 2);

await withWorkplace(MAX_MS, run);

async function run({ workplace, postgres }) {
  const { date, commit, cores, cpu, loadBefore, versions } = describeMachine(workplace, postgres.version, []);
  console.log(
    `${date.slice(0, 10)}, commit ${commit}, ${cores} × ${cpu}, load average before ${loadBefore}, node ${versions.node}, postgres ${versions.postgres}`,
  );
  const provider = delayMs === 0 ? await startProvider(workplace) : await startNodeProvider(workplace);
  const bench = { workplace, provider };
  const plain = await postgres.createDatabase();
  const identities = await Identities.create();
  const first = await start(bench, plain);
  const made = await createTrusts(first, {
    count: trusts,
    identities,
    maxLive: 100_000,
  });
  await first.stop();
  const full = await copyOf(postgres, plain);
  const known = await insertKnownTokens(full.url, made[0], cached);
  await insertTokens(full.url, made.slice(1), tokens - cached);
  console.log(`${tokens} live tokens of ${trusts} trusts`);
  const parts = {
    starts: () => measureStarts(bench, { plain, full }),
    lists: () => measureLists(bench, { plain, full }, made),
    memory: () => measureCache(bench, full, known),
    issuing: () => measureIssuing(bench, full, made, identities, postgres),
  };
  if (values.part !== undefined && !(values.part in parts))
    throw new Error(`--part takes one of ${Object.keys(parts).join(', ')}`);
  const chosen = values.part === undefined ? Object.keys(parts) : [values.part];
  for (const part of chosen) await parts[part]();
}

/** @returns a gateway that is ready, on a database that may have been used before */
async function start({ workplace, provider }, database, env = {}, nodeArgs = []) {
  const { flags, entry } = startArgs(root);
  const begin = performance.now();
  const { pid, found, stop } = await workplace.start([process.execPath, ...flags, ...nodeArgs, entry], {
    name: 'postern',
    cores: workplace.cores.gateway,
    ready: (text) => {
      const url = /ready on http:\/\/127\.0\.0\.1:(\d+)\n/.exec(text);
      return (
        url && { port: Number(url[1]), key: / once: (ptn_\S+)\n/.exec(text)?.[1], at: performance.now() }
      );
    },
    env: {
      PORT: '0',
      DATA_DIR: join(workplace.folder, 'data'),
      DATABASE_URL: database.url,
      ADMIN_TOKEN,
      MASTER_KEY,
      PROVIDER_URL: `http://127.0.0.1:${provider.port}`,
      PROVIDER_KEY: 'sk-provider',
      // So that X-Forwarded-For can play any number of client addresses.
      TRUSTED_PROXIES: '127.0.0.1/32',
      LOG_LEVEL: 'warn',
      SHUTDOWN_GRACE_MS: '0',
      ...env,
    },
  });
  const readyMs = found.at - begin;
  const url = `http://127.0.0.1:${found.port}`;
  return {
    name: 'postern',
    pid,
    stop,
    readyMs,
    url,
    port: found.port,
    key: found.key,
    admin: adminOf(url),
    calls: 0,
  };
}

/** @throws Error for every status but 200 and 201 */
function adminOf(url) {
  return async (method, path, body) => {
    const response = await fetch(`${url}/admin/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
      body: body && JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text);
  };
}

/** @returns a database with the same content */
async function copyOf(postgres, { url }) {
  const copy = await postgres.createDatabase();
  const name = new URL(copy.url).pathname.slice(1);
  const admin = new URL(url);
  admin.pathname = '/postgres';
  const client = new pg.Client({ connectionString: admin.href });
  await client.connect();
  try {
    await client.query(`DROP DATABASE ${name}`);
    await client.query(`CREATE DATABASE ${name} TEMPLATE ${new URL(url).pathname.slice(1)}`);
  } finally {
    await client.end();
  }
  return copy;
}

async function measureStarts(bench, databases) {
  const found = { plain: [], full: [] };
  for (let i = 0; i < starts; i++)
    for (const name of i % 2 === 0 ? ['plain', 'full'] : ['full', 'plain']) {
      const gateway = await start(bench, databases[name]);
      await sleep(IDLE_MS);
      found[name].push({
        ready: gateway.readyMs,
        cpu: treeMicros(gateway.pid) / 1_000,
        mib: residentBytes(gateway.pid) / 2 ** 20,
      });
      await gateway.stop();
    }
  for (const [field, what] of [
    ['ready', 'ms until ready'],
    ['cpu', `ms of processor time until ${IDLE_MS / 1_000} s after that`],
    ['mib', 'MiB resident then'],
  ]) {
    const [none, all] = ['plain', 'full'].map((name) => found[name].map((one) => one[field]));
    print(
      what,
      `without ${shown(median(none))}, with ${shown(median(all))}, ratio ${range(ratios(all, none))}`,
    );
  }
}

async function measureLists(bench, databases, made) {
  const paths = {
    keys: '/keys?limit=100',
    trusts: '/trusts',
    'tokens of a key': `/keys/${made[0].keyId}/tokens`,
  };
  for (const [name, database] of Object.entries(databases)) {
    const gateway = await start(bench, database);
    for (const [what, path] of Object.entries(paths)) {
      const times = [];
      for (let i = 0; i < LISTS; i++) {
        const from = performance.now();
        await gateway.admin('GET', path);
        times.push(performance.now() - from);
      }
      const [p50, p95] = [0.5, 0.95].map((share) => shown(percentile(times, share)));
      print(
        `list of ${what}, ${name === 'full' ? 'with' : 'without'} tokens`,
        `p50 ${p50} ms, p95 ${p95} ms`,
      );
    }
    await gateway.stop();
  }
}

/** Calls with one token, then as many with a token each: the difference is what the cache holds. */
async function measureCache(bench, database, known) {
  const file = join(bench.workplace.folder, 'heap');
  const nodeArgs = ['--expose-gc', '--import', join(root, 'bench/tokens/heap.mjs')];
  const gateway = await start(bench, database, { HEAP_FILE: file }, nodeArgs);
  const heapBytes = async () => Number(await (await fetch(readFileSync(file, 'utf8'))).text());
  await callOnceEach(gateway.port, Array(cached).fill(known[0]), CONNECTIONS);
  const before = [residentBytes(gateway.pid), await heapBytes()];
  const ms = await callOnceEach(gateway.port, known, CONNECTIONS);
  const [resident, heap] = [residentBytes(gateway.pid), await heapBytes()].map(
    (bytes, at) => bytes - before[at],
  );
  await gateway.stop();
  print(
    `memory for ${cached} more tokens in the cache`,
    `${shown(heap / cached)} bytes each, ${shown(heap / 2 ** 20)} MiB of heap; with garbage ${shown(resident / 2 ** 20)} MiB`,
  );
  print('first calls of tokens', `${shown((cached / ms) * 1_000)} a second`);
}

async function measureIssuing(bench, database, made, identities, postgres) {
  const account = join(bench.workplace.folder, 'account');
  const nodeArgs = ['--import', join(root, 'bench/key-flood/account.mjs')];
  const gateway = await start(bench, database, { ACCOUNT_FILE: account }, nodeArgs);
  const { key } = await gateway.admin('POST', '/keys', { team: 'default', name: `other-${Date.now()}` });
  const told = async () => (await fetch(readFileSync(account, 'utf8'))).json();
  const target = { port: gateway.port, headers: { Authorization: `Bearer ${key}` } };
  const request = delayMs === 0 ? chatRequest(target) : delayedRequest(target, delayMs);
  // Twice as many as calls are under way.
  const connections = Math.max(CONNECTIONS, Math.ceil((2 * rate * delayMs) / 1_000));
  const loop = (forMs) => openLoop({ port: gateway.port, request, ratePerSecond: rate, connections, forMs });
  const [large, ...others] = made;
  const issuing = startIssuing(bench.workplace, gateway.port, database.url);
  const identity = await identities.sign();
  const issue = (perSecond, forMs, more = {}) =>
    issuing({ trusts: others, identity, perSecond, forMs, ...more });
  await Promise.all([loop(ROUND_MS), issue(issueRate, ROUND_MS)]);
  await issue(issueRate, ROUND_MS, { directly: true });

  // `beside`: Postgres and a process on its core have the same work, and the gateway has none.
  const work = {
    without: () => ({ statuses: {}, latencies: [] }),
    with: () => issue(issueRate, ROUND_MS),
    beside: () => issue(issueRate, ROUND_MS, { directly: true }),
  };
  const kinds = Object.keys(work);
  const found = { without: [], with: [], beside: [] };
  for (let i = 0; i < rounds; i++)
    for (const kind of kinds.map((_, at) => kinds[(at + i) % kinds.length])) {
      const before = [treeMicros(gateway.pid), treeMicros(postgres.pid), await told()];
      const [{ latencies, waits, lateness }, issued] = await Promise.all([loop(ROUND_MS), work[kind]()]);
      const after = [treeMicros(gateway.pid), treeMicros(postgres.pid), await told()];
      const [gatewayMicros, postgresMicros] = [after[0] - before[0], after[1] - before[1]];
      const asked = after[2].lookUps - before[2].lookUps;
      const block = after[2].longestBlockMs;
      const queued = (after[2].waitedMicros - before[2].waitedMicros) / 1_000;
      const [p50, p99] = [0.5, 0.99].map((share) => percentile(latencies, share));
      const [wait, late] = [waits, lateness].map((times) => percentile(times, 0.99));
      found[kind].push({
        p50,
        p99,
        wait,
        waits,
        late,
        block,
        queued,
        gatewayMicros,
        postgresMicros,
        asked,
        issued,
      });
    }
  const of = (kind, field) => found[kind].map((round) => round[field]);
  const compared = (kind, field) =>
    `${shown(median(of(kind, field)))} ms, ratio ${range(ratios(of(kind, field), of('without', field)))}`;
  for (const [field, what] of [
    ['p50', 'p50'],
    ['p99', 'p99'],
    ['wait', 'p99, from when each was sent,'],
    ['late', 'p99 of how late the generator was, for'],
    ['block', 'longest time that the event loop of the gateway stood in a round'],
    ['queued', 'time that its main thread was ready and had no core in a round'],
  ])
    print(
      `${what} of ${rate} calls a second`,
      `without ${shown(median(of('without', field)))} ms; while ${issueRate} tokens a second are issued ${compared('with', field)}; while they are issued in Postgres alone ${compared('beside', field)}`,
    );
  const pooled = kinds.map((kind) => percentile(of(kind, 'waits').flat(), 0.99));
  print(
    'p99 from when they were sent, of the calls of all rounds',
    kinds
      .map((kind, at) => `${kind} ${shown(pooled[at])} ms (${(pooled[at] / pooled[0]).toFixed(3)})`)
      .join(', '),
  );
  const perRound = (issueRate * ROUND_MS) / 1_000;
  for (const [field, what] of [
    ['gatewayMicros', 'the gateway'],
    ['postgresMicros', 'Postgres'],
  ]) {
    const more = of('with', field).map((micros, at) => (micros - found.without[at][field]) / perRound);
    print(`µs of processor time of ${what} for a token`, shown(median(more)));
  }
  print('look-ups of keys meanwhile', `${of('with', 'asked').reduce((sum, one) => sum + one, 0)}`);
  const all = of('with', 'issued');
  print(
    'issued beside the calls',
    issuedText(
      all.flatMap((one) => one.latencies),
      all.map((one) => one.statuses),
    ),
  );
  const alone = await issue(null, 2 * ROUND_MS);
  print(
    `as fast as it goes, one after the other on 4 connections`,
    `${shown(alone.latencies.length / ((2 * ROUND_MS) / 1_000))} a second; ${issuedText(alone.latencies, [alone.statuses])}`,
  );
  const one = await issue(issueRate, ROUND_MS, { trusts: [large] });
  print(`by the trust with ${cached} live tokens`, issuedText(one.latencies, [one.statuses]));
  await gateway.stop();
}

function issuedText(latencies, statuses) {
  const counts = {};
  for (const one of statuses)
    for (const [status, count] of Object.entries(one)) counts[status] = (counts[status] ?? 0) + count;
  const [p50, p95] = [0.5, 0.95].map((share) => shown(percentile(latencies, share)));
  const text = Object.entries(counts).map(([status, count]) => `${count} x ${status}`);
  return `${text.join(', ')}; p50 ${p50} ms, p95 ${p95} ms`;
}

function print(what, text) {
  console.log(`${what}: ${text}`);
}

function shown(value) {
  return value === null ? '-' : value.toFixed(value < 100 ? 1 : 0);
}

function range(all) {
  if (all.length === 0) return '-';
  return `${median(all).toFixed(2)} (${Math.min(...all).toFixed(2)} to ${Math.max(...all).toFixed(2)})`;
}
