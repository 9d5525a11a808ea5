// `npm run bench:key-flood`: does a flood of made-up keys slow down callers with a known key? Anybody can make up a string
// of the key format with the right checksum, and each needs a query that no cache saves. Calls with a known key are made at
// a fixed rate, timed from the moment each was due: without a flood, during one of junk (wrong checksum, no query: what the
// flood costs in processor time alone), and during one of made-up keys. Everything is on loopback, in a temporary folder,
// and gone after some forty seconds.
import { fork } from 'node:child_process';
import { mkdtempSync, readFileSync, realpathSync } from 'node:fs';
import { createServer } from 'node:http';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { ENTRY, NODE_FLAGS } from '../scripts/child.mjs';
import { removeDataDir, startGateway } from '../scripts/demo/gateway.mjs';
import { root } from '../scripts/prepare.mjs';
import { firstCalls, steadyCalls } from './key-flood/known.mjs';
import { report } from './key-flood/report.mjs';

const ROUNDS = 3;
const ROUND_MS = 1_400;
const WARM_UP_MS = 1_500;
const KNOWN_PER_SECOND = 100;
const FLOOD_PER_SECOND = 2_000;
/** Keys that the gateway has not seen yet; each makes one call during a round. */
const COLD_PER_ROUND = 8;
const MAX_MS = 120_000;
const FLOOD_ADDRESS = '198.51.100.1';

const FLOODS = [
  { name: 'no flood', flood: null },
  ...[FLOOD_PER_SECOND, null].flatMap((rate) => {
    const pace = rate === null ? 'as fast as it goes' : `${rate}/s`;
    return [
      { name: `junk, ${pace}`, flood: { rate, keys: 'junk', address: FLOOD_ADDRESS } },
      { name: `made up, one address, ${pace}`, flood: { rate, keys: 'made up', address: FLOOD_ADDRESS } },
      { name: `made up, many addresses, ${pace}`, flood: { rate, keys: 'made up', address: null } },
    ];
  }),
];

const cleanups = [];
let ended = false;
async function end(exitCode, why) {
  if (ended) return;
  ended = true;
  if (why) process.stderr.write(`${why}\n`);
  for (const cleanup of cleanups.reverse()) await cleanup();
  process.exit(exitCode);
}
process.once('SIGINT', () => void end(130, 'stopped')).once('SIGTERM', () => void end(143, 'stopped'));
setTimeout(() => void end(1, `not done after ${MAX_MS / 1_000} s`), MAX_MS).unref();

async function startProvider() {
  const answer = JSON.stringify({ object: 'chat.completion', filler: 'x'.repeat(650) });
  const head = { 'content-type': 'application/json', 'content-length': answer.length };
  const server = createServer((req, res) =>
    req.resume().on('end', () => res.writeHead(200, head).end(answer)),
  );
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  cleanups.push(() => server.closeAllConnections());
  return `http://127.0.0.1:${server.address().port}`;
}

async function startTarget() {
  const dataDir = realpathSync(mkdtempSync(join(tmpdir(), 'postern-key-flood-')));
  cleanups.push(() => removeDataDir(dataDir));
  const args = ['--import', join(import.meta.dirname, 'key-flood', 'account.mjs'), join(root, ENTRY)];
  const gateway = startGateway([...NODE_FLAGS, ...args], dataDir, {
    PROVIDER_URL: await startProvider(),
    PROVIDER_KEY: 'sk-provider',
    // So that X-Forwarded-For can play any number of client addresses.
    TRUSTED_PROXIES: '127.0.0.1/32',
    ACCOUNT_FILE: join(dataDir, 'account'),
    LOG_LEVEL: 'fatal',
  });
  cleanups.push(() => gateway.stop());
  const { url, key, adminTokenFile } = await gateway.ready;
  const accountUrl = readFileSync(join(dataDir, 'account'), 'utf8');
  return {
    url,
    key,
    token: readFileSync(adminTokenFile, 'utf8').trim(),
    account: async () => (await fetch(accountUrl)).json(),
  };
}

async function issueKeys({ url, token }, count) {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const keys = [];
  for (let i = 0; i < count; i++) {
    const body = JSON.stringify({ team: 'default', name: `cold-${i}` });
    const answer = await fetch(`${url}/admin/v1/keys`, { method: 'POST', headers, body });
    keys.push((await answer.json()).key);
  }
  return keys;
}

function startFlood(url) {
  const child = fork(join(import.meta.dirname, 'key-flood', 'flood.mjs'), [new URL(url).port]);
  cleanups.push(() => child.kill());
  child.once('exit', () => void end(1, 'the flood ended'));
  return (flood, forMs) =>
    new Promise((resolve) => {
      child.once('message', resolve).send({ ...flood, forMs });
    });
}

async function run() {
  const target = await startTarget();
  const sendFlood = startFlood(target.url);
  const cold = await issueKeys(target, ROUNDS * FLOODS.length * COLD_PER_ROUND * 2);
  const steady = { ...target, perSecond: KNOWN_PER_SECOND };
  await Promise.all([steadyCalls({ ...steady, forMs: WARM_UP_MS }), sendFlood(FLOODS[2].flood, WARM_UP_MS)]);

  const results = FLOODS.map(({ name }) => ({ name, rounds: [] }));
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, { flood }] of FLOODS.entries()) {
      const before = await target.account();
      const apart = ROUND_MS / (COLD_PER_ROUND + 1);
      const [known, away, near, flooded] = await Promise.all([
        steadyCalls({ ...steady, forMs: ROUND_MS }),
        firstCalls({ ...target, keys: cold.splice(0, COLD_PER_ROUND), apart }),
        // An address that many unknown keys come from has few look-ups left, for known keys too.
        flood?.keys === 'made up' && flood.address !== null
          ? firstCalls({ ...target, keys: cold.splice(0, COLD_PER_ROUND), apart, address: FLOOD_ADDRESS })
          : [],
        flood && sendFlood(flood, ROUND_MS),
      ]);
      const after = await target.account();
      const took = (name) => after[name] - before[name];
      results[i].rounds.push({
        known,
        away,
        near,
        flooded,
        lookUps: took('lookUps') / (took('at') / 1_000),
        cpu: took('cpuMicros') / (took('at') * 1_000),
        waited: took('waitedMicros') / (took('at') * 1_000),
        longestBlockMs: after.longestBlockMs,
      });
    }
  }
  process.stdout.write(report(results));
  process.stdout.write(
    `\n${ROUNDS} interleaved rounds of ${ROUND_MS / 1_000} s; ${availableParallelism()} cores, ` +
      `load ${loadavg()[0].toFixed(1)}, Node ${process.versions.node}.\n`,
  );
}

run().then(
  () => end(0),
  (error) => end(1, error.stack),
);
