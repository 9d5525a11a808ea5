// How much later does a caller have its response, or the first byte of a stream, through the bare proxy and through Postern?
// Short rounds of each in turns: without a gateway, one connection at a time, and at half of the calls a second that Postern
// bears on this machine.
import { compareRows } from '../contenders/start-all.mjs';
import { startBare } from '../contenders/bare.mjs';
import { startWithKey } from '../contenders/keyed.mjs';
import { closedLoop } from '../load/closed-loop.mjs';
import { openConnections } from '../load/connection.mjs';
import { openLoop } from '../load/open-loop.mjs';
import { chatRequest, streamRequest } from '../load/request.mjs';
import { startNodeProvider } from '../provider/node.mjs';
import { figure } from '../report.mjs';
import { median, percentile, ratios } from '../statistics.mjs';

const CALLS = 200;
const WARM_UP = { connections: 16, most: 6_000, forMs: 120_000 };
const BUSY = { connections: 64, most: 8_000, forMs: 3_000 };
const HALF_LOAD_MS = 1_000;
/** Few events, so that a stream is over soon after its first byte. */
const STREAM = { chunks: 2, everyMs: 1 };

export const LATENCY_COLUMNS = [
  ...['Node', 'what', 'p50 direct µs', 'bare +µs', 'Postern +µs', 'over bare p50 µs'],
  ...['p99 / bare (quartiles)', 'over bare p99 µs'],
];

/** @returns p50 and p99 in ms of each round, by what is timed and the contender's name */
export async function measureAddedLatency(bench, { rounds, say }) {
  const provider = await startNodeProvider(bench.workplace);
  const own = { ...bench, provider };
  const direct = { name: 'direct', port: provider.port, headers: {}, calls: 0 };
  const contenders = [direct];
  for (const one of [await startBare(own), await startWithKey(own, {})])
    contenders.push({ ...one, calls: 0 });
  for (const one of contenders) await loaded(one, WARM_UP);
  const postern = contenders.at(-1);
  const { calls, ms } = await loaded(postern, BUSY);
  const ratePerSecond = Math.max(20, Math.round((calls / ms) * 500));
  const halfLoad = `JSON, ${ratePerSecond} calls a second`;
  const kinds = {
    'JSON, one connection': (one) => timed(one, chatRequest(one), 'onAnswer'),
    'first byte of a stream, one connection': (one) => timed(one, streamRequest(one, STREAM), 'onRead'),
    [halfLoad]: (one) => atRate(one, ratePerSecond),
  };
  const found = {};
  for (const kind of Object.keys(kinds))
    found[kind] = Object.fromEntries(contenders.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round++)
    for (const [kind, measure] of Object.entries(kinds))
      for (const one of round % 2 === 0 ? contenders : contenders.toReversed()) {
        const all = await measure(one);
        found[kind][one.name].push({ p50: percentile(all, 0.5), p99: percentile(all, 0.99) });
      }
  await compareRows(contenders);
  for (const { stop } of contenders.slice(1)) await stop();
  await provider.stop();
  say(`latency: ${rounds} rounds, half load is ${ratePerSecond} calls a second`);
  return found;
}

/** Rows of a table: differences and ratios are of rounds that follow each other. */
export function latencyRows(version, found) {
  return Object.entries(found).map(([kind, { direct, bare, postern }]) => {
    const of = (rounds, field) => rounds.map((round) => round[field] * 1_000);
    const more = (than, field) => median(of(postern, field).map((value, i) => value - of(than, field)[i]));
    const all = ratios(of(postern, 'p99'), of(bare, 'p99'));
    const [low, high] = [0.25, 0.75].map((share) => figure(percentile(all, share), 2));
    return [
      version,
      kind,
      figure(median(of(direct, 'p50')), 0),
      figure(median(of(bare, 'p50').map((value, i) => value - of(direct, 'p50')[i])), 0),
      figure(more(direct, 'p50'), 0),
      figure(more(bare, 'p50'), 0),
      `${figure(median(all), 2)} (${low} to ${high})`,
      figure(more(bare, 'p99'), 0),
    ];
  });
}

async function loaded(one, bounds) {
  const loop = await closedLoop({ port: one.port, request: chatRequest(one), ...bounds });
  one.calls += loop.calls;
  return loop;
}

async function atRate(one, ratePerSecond) {
  const { calls, latencies } = await openLoop({
    ...{ port: one.port, request: chatRequest(one), connections: 64, ratePerSecond, forMs: HALF_LOAD_MS },
  });
  one.calls += calls;
  return latencies;
}

/** One call after the other on one connection. @param event what is timed: the first read of a response, or its end */
async function timed(one, request, event) {
  const [connection] = await openConnections(one.port, 1);
  const times = [];
  for (let i = 0; i < CALLS; i++)
    await new Promise((resolve, reject) => {
      const sentAt = performance.now();
      let at = null;
      connection.fail = reject;
      connection.onRead = () => (at ??= performance.now());
      connection.onAnswer = (status) => {
        if (status !== 200) return reject(new Error(`a call was answered with ${status}`));
        times.push((event === 'onRead' ? at : performance.now()) - sentAt);
        resolve();
      };
      connection.send(request);
    });
  connection.close();
  one.calls += CALLS;
  return times;
}
