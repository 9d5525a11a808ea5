// `npm run bench:comparison`: the shape in which gateways were compared in public in July 2026. A provider that takes 20 ms;
// one connection, then more and more of them, then 512 streams of 100 events a second. Postern with WORKERS=auto on the cores
// that there are, a key with limits, and durable rows.
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { startWithKey } from './contenders/keyed.mjs';
import { startBare } from './contenders/bare.mjs';
import { compareRows } from './contenders/start-all.mjs';
import { withWorkplace } from './lifetime.mjs';
import { closedLoop } from './load/closed-loop.mjs';
import { openConnections } from './load/connection.mjs';
import { delayedRequest, streamRequest } from './load/request.mjs';
import { describeMachine } from './machine.mjs';
import { startNodeProvider } from './provider/node.mjs';
import { figure, table } from './report.mjs';
import { median, percentile } from './statistics.mjs';

const HELP = `Usage: npm run bench:comparison -- [options]

A provider that takes 20 ms, without a gateway, through a bare proxy, and through Postern with WORKERS=auto, limits and
durable rows: one connection, rising load, and streams of 100 events a second. What is added to the time without a gateway.

  --seconds N    of each step and contender (5)
  --streams N    at the same time (512)`;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    streams: { type: 'string', default: '512' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(HELP);
  process.exit(0);
}
const FOR_MS = Number(values.seconds) * 1_000;
const STREAMS = Number(values.streams);
const PROVIDER_MS = 20;
const CONNECTIONS = [1, 8, 32, 128, 512];
const EVERY_MS = 10;
/** None is reached. */
const LIMITS = {
  limits: { requests_per_minute: 1e9, tokens_per_minute: 1e9, concurrent_requests: 100_000 },
};

await withWorkplace(
  3_600_000,
  async ({ workplace, postgres }) => {
    workplace.cores = { gateway: null, load: null, others: null };
    const provider = await startNodeProvider(workplace);
    const bench = { workplace, postgres, provider };
    const direct = { name: 'direct', port: provider.port, headers: {}, calls: 0 };
    const contenders = [direct];
    for (const one of [await startBare(bench), await startWithKey(bench, LIMITS, null, { WORKERS: 'auto' })])
      contenders.push({ ...one, calls: 0 });
    for (const one of contenders.slice(1)) await timed(one, 16, 3_000);
    const rows = [];
    for (const connections of CONNECTIONS) {
      const found = [];
      for (const one of contenders) found.push(await timed(one, connections, FOR_MS));
      rows.push(...rowsOf(`${connections} connections`, contenders, found));
      console.error(`${connections} connections`);
    }
    const chunks = Math.max(1, Math.round(FOR_MS / EVERY_MS));
    const streams = [];
    for (const one of contenders) streams.push(await streamed(one, chunks));
    rows.push(...rowsOf(`${STREAMS} streams, first byte`, contenders, streams));
    const parity = await compareRows(contenders);
    const { commit, cpu, loadBefore } = describeMachine(workplace, postgres.version, []);
    console.log(
      `commit ${commit}, ${availableParallelism()} × ${cpu}, load average before ${loadBefore}, Node.js ${process.version}`,
    );
    console.log(table(['load', '', 'calls/s', 'p50 ms', 'p99 ms', 'added p50 µs', 'added p99 µs'], rows));
    console.log(
      `Events a second in ${STREAMS} streams: ${contenders.map(({ name }, i) => `${name} ${figure(streams[i].events, 0)}`).join(', ')}`,
    );
    console.log(`${parity.postern.calls} calls, ${parity.postern.rows} rows`);
  },
  { isPinned: false },
);

/** A closed loop with the time of each call. */
async function timed(one, connections, forMs) {
  const times = [];
  const { calls, ms } = await closedLoop({
    ...{ port: one.port, request: delayedRequest(one, PROVIDER_MS), connections, forMs },
    onTime: (time) => times.push(time),
  });
  one.calls += calls;
  return { times, perSecond: (calls / ms) * 1_000 };
}

/** So many streams, begun at the same time. */
async function streamed(one, chunks) {
  const open = await openConnections(one.port, STREAMS);
  const request = streamRequest(one, { chunks, everyMs: EVERY_MS });
  const times = [];
  const begin = performance.now();
  await Promise.all(
    open.map(
      (connection) =>
        new Promise((resolve, reject) => {
          const sentAt = performance.now();
          connection.fail = reject;
          connection.onRead = () => {
            times.push(performance.now() - sentAt);
            connection.onRead = null;
          };
          connection.onAnswer = (status) =>
            status === 200 ? resolve() : reject(new Error(`a stream was answered with ${status}`));
          connection.send(request);
        }),
    ),
  );
  const seconds = (performance.now() - begin) / 1_000;
  for (const connection of open) connection.close();
  one.calls += STREAMS;
  return { times, perSecond: STREAMS / seconds, events: (STREAMS * chunks) / seconds };
}

function rowsOf(load, contenders, found) {
  const at = ({ times }, share) => (share === 0.5 ? median(times) : percentile(times, share));
  return contenders.map(({ name }, i) => [
    load,
    name,
    figure(found[i].perSecond, 0),
    ...[0.5, 0.99].map((share) => figure(at(found[i], share), 2)),
    ...[0.5, 0.99].map((share) =>
      i === 0 ? '' : figure((at(found[i], share) - at(found[0], share)) * 1_000, 0),
    ),
  ]);
}
