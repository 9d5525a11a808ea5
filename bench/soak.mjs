// `npm run bench:soak`: 500 streams at a time for ten minutes, one in twenty left in the middle. Does anything grow?
// With `--mixed`: calls of several kinds with prompts of 100 KiB. Are rows, budgets and bytes right meanwhile?
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startPostern } from './contenders/postern.mjs';
import { withWorkplace } from './lifetime.mjs';
import { streamRequest } from './load/request.mjs';
import { Streams } from './load/streams.mjs';
import { startNodeProvider } from './provider/node.mjs';
import { budgetsOf, loadMixed, startMixed } from './soak/mixed.mjs';
import { quarters } from './statistics.mjs';
import { root } from './workplace.mjs';

const STREAMS = 500;
const LEFT_SHARE = 0.05;
/** Two to four seconds a stream. */
const CHUNKS = { chunks: 30, everyMs: 100 };
/** Until memory and connections have found their size. */
const SETTLE_MS = 15_000;
const FIELDS = {
  rss: 'resident memory, MiB',
  heapUsed: 'heap in use, MiB',
  external: 'outside of the heap, MiB',
  sockets: 'sockets',
  files: 'file descriptors',
  handles: 'handles and requests',
  loopP99Ms: 'event loop delay, p99, ms',
};
/** What is more than this many times as large in the last quarter, and more than so much larger, has grown. */
const GROWTH = 1.1;
const SLACK = 8;
const USAGE = 'Usage: npm run bench:soak -- [--minutes 10] [--mixed]';

const { minutes, mixed } = readOptions();
await withWorkplace((minutes + 5) * 60_000, mixed ? soakMixed : soak);

async function soak({ workplace, postgres }) {
  const provider = await startNodeProvider(workplace);
  const { samples, options } = sampling(workplace);
  const gateway = await startPostern({ workplace, postgres, provider }, options);
  process.stdout.write(
    `${STREAMS} streams for ${minutes} min, ${100 * LEFT_SHARE} % of them left in the middle\n`,
  );
  const streams = new Streams();
  const end = performance.now() + SETTLE_MS + minutes * 60_000;
  await Promise.all(Array.from({ length: STREAMS }, (_, i) => keepStreaming(streams, gateway, i, end)));
  streams.check();
  const isRight = await compareWith(gateway, streams.begun);
  const hasGrown = await show(samples);
  await gateway.stop();
  return isRight && !hasGrown ? 0 : 1;
}

async function soakMixed({ workplace, postgres }) {
  const provider = await startNodeProvider(workplace, 'bench/soak/provider.mjs');
  const { samples, options } = sampling(workplace);
  const gateway = await startMixed({ workplace, postgres, provider }, options);
  const made = await loadMixed(gateway, performance.now() + SETTLE_MS + minutes * 60_000);
  process.stdout.write(`calls of ${minutes} min with equal bytes: ${JSON.stringify(made)}\n`);
  let isRight = await compareWith(
    gateway,
    made.streams + made.limited + made['limited streams'] + made.cached,
  );
  for (const [resource, used, charged] of await budgetsOf(gateway)) {
    const isEqual = Math.abs(used - charged) < 1e-9;
    isRight &&= isEqual;
    process.stdout.write(
      `budget in ${resource}: ${used} used, ${charged} charged in the log${isEqual ? '' : ': NOT EQUAL'}\n`,
    );
  }
  const hasGrown = await show(samples);
  await gateway.stop();
  return isRight && !hasGrown ? 0 : 1;
}

/** Where the gateway writes its samples, and how. */
function sampling(workplace) {
  const samples = join(workplace.folder, 'samples');
  const sampler = join(root, 'bench/soak/sampler.mjs');
  return { samples, options: { nodeArgs: ['--import', sampler], env: { BENCH_SAMPLES: samples } } };
}

/** @returns whether there are as many rows as calls */
async function compareWith({ database }, calls) {
  const rows = await database.settledRows(calls);
  const outcomes = Object.entries(await database.outcomes()).map(([outcome, count]) => `${count} ${outcome}`);
  process.stdout.write(`${calls} calls, ${rows} rows: ${outcomes.join(', ')}\n`);
  return rows === calls;
}

/** One stream after the other. */
async function keepStreaming(streams, gateway, number, end) {
  await sleep(number * 5);
  const request = streamRequest(gateway, CHUNKS);
  while (performance.now() < end && streams.fault === null) {
    await new Promise((done, fail) => {
      streams.add(gateway.port, request, done).then((connection) => {
        connection.socket.once('close', done);
        if (Math.random() >= LEFT_SHARE) return;
        setTimeout(() => streams.leave(connection), Math.random() * CHUNKS.chunks * CHUNKS.everyMs);
      }, fail);
    });
  }
}

/** @returns whether anything has grown; the delay of the event loop may */
async function show(file) {
  const lines = (await readFile(file, 'utf8')).trim().split('\n');
  const samples = lines
    .slice(SETTLE_MS / 1_000, SETTLE_MS / 1_000 + minutes * 60)
    .map((line) => JSON.parse(line));
  const scale = (field) => (/MiB/.test(FIELDS[field]) ? 2 ** 20 : 1);
  process.stdout.write(`${''.padEnd(28)}${'first quarter'.padStart(14)}${'last quarter'.padStart(14)}\n`);
  const grown = [];
  for (const [field, name] of Object.entries(FIELDS)) {
    const { first, last } = quarters(samples.map((sample) => sample[field] / scale(field)));
    if (field !== 'loopP99Ms' && last > first * GROWTH && last > first + SLACK) grown.push(name);
    process.stdout.write(
      `${name.padEnd(28)}${first.toFixed(1).padStart(14)}${last.toFixed(1).padStart(14)}\n`,
    );
  }
  if (grown.length > 0) process.stdout.write(`GROWN: ${grown.join('; ')}\n`);
  return grown.length > 0;
}

function readOptions() {
  try {
    const { values } = parseArgs({
      options: { minutes: { type: 'string', default: '10' }, mixed: { type: 'boolean', default: false } },
    });
    const number = Number(values.minutes);
    if (!(number > 0 && number <= 1_440)) throw new Error();
    return { minutes: number, mixed: values.mixed };
  } catch {
    process.stderr.write(`${USAGE}\n`);
    process.exit(1);
  }
}
