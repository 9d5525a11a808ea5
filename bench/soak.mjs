// `npm run bench:soak`: 500 streams at a time for ten minutes, one in twenty left in the middle. Does anything grow?
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startPostern } from './contenders/postern.mjs';
import { withWorkplace } from './lifetime.mjs';
import { streamRequest } from './load/request.mjs';
import { Streams } from './load/streams.mjs';
import { startNodeProvider } from './provider/node.mjs';
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
  handles: 'handles and requests',
  loopP99Ms: 'event loop delay, p99, ms',
};
const USAGE = 'Usage: npm run bench:soak -- [--minutes 10]';

const minutes = readMinutes();
await withWorkplace((minutes + 5) * 60_000, soak);

async function soak({ workplace, postgres }) {
  const provider = await startNodeProvider(workplace);
  const samples = join(workplace.folder, 'samples');
  const gateway = await startPostern(
    { workplace, postgres, provider },
    { nodeArgs: ['--import', join(root, 'bench/soak/sampler.mjs')], env: { BENCH_SAMPLES: samples } },
  );
  process.stdout.write(
    `${STREAMS} streams for ${minutes} min, ${100 * LEFT_SHARE} % of them left in the middle\n`,
  );
  const streams = new Streams();
  const end = performance.now() + SETTLE_MS + minutes * 60_000;
  await Promise.all(Array.from({ length: STREAMS }, (_, i) => keepStreaming(streams, gateway, i, end)));
  streams.check();
  const rows = await gateway.database.settledRows(streams.begun);
  const lines = (await readFile(samples, 'utf8'))
    .trim()
    .split('\n')
    .slice(SETTLE_MS / 1_000, SETTLE_MS / 1_000 + minutes * 60);
  show(lines.map((line) => JSON.parse(line)));
  const outcomes = Object.entries(await gateway.database.outcomes()).map(
    ([outcome, count]) => `${count} ${outcome}`,
  );
  process.stdout.write(`${streams.begun} calls, ${rows} rows: ${outcomes.join(', ')}\n`);
  await gateway.stop();
  return rows === streams.begun ? 0 : 1;
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

function show(samples) {
  const scale = (field) => (/MiB/.test(FIELDS[field]) ? 2 ** 20 : 1);
  process.stdout.write(`${''.padEnd(28)}${'first quarter'.padStart(14)}${'last quarter'.padStart(14)}\n`);
  for (const [field, name] of Object.entries(FIELDS)) {
    const { first, last } = quarters(samples.map((sample) => sample[field] / scale(field)));
    process.stdout.write(
      `${name.padEnd(28)}${first.toFixed(1).padStart(14)}${last.toFixed(1).padStart(14)}\n`,
    );
  }
}

function readMinutes() {
  try {
    const { values } = parseArgs({ options: { minutes: { type: 'string', default: '10' } } });
    const number = Number(values.minutes);
    if (!(number > 0 && number <= 1_440)) throw new Error();
    return number;
  } catch {
    process.stderr.write(`${USAGE}\n`);
    process.exit(1);
  }
}
