// What does a call take with two workers, each with its journal and its writer, in place of one? Both gateways serve the same
// load in turns on the same cores. Where no core is free, calls a second say nothing: with processor time of a call that is
// the same, two free cores serve twice the calls.
import { setTimeout as sleep } from 'node:timers/promises';
import { startWithKey } from '../contenders/keyed.mjs';
import { compareRows } from '../contenders/start-all.mjs';
import { treeThreadMicros } from '../cpu-time.mjs';
import { closedLoop } from '../load/closed-loop.mjs';
import { chatRequest } from '../load/request.mjs';
import { figure } from '../report.mjs';
import { median, percentile, ratios } from '../statistics.mjs';

const CONNECTIONS = 64;
const CALLS = 2_000;
const WARM_UP = 12_000;
const FOR_MS = 120_000;
const SETTLE_MS = 200;

export const WORKER_COLUMNS = [
  'Node',
  '1 worker µs',
  '2 workers µs',
  'calls of a core-second, 2 / 1 (quartiles)',
];

/** @returns µs of processor time a call in each round, of the process tree */
export async function measureWorkers(bench, { rounds, say }) {
  const gateways = [];
  for (const workers of [1, 2]) {
    const gateway = await startWithKey(bench, {}, null, { WORKERS: String(workers) });
    gateways.push({ ...gateway, name: String(workers), calls: 0 });
  }
  const run = async (gateway, most) => {
    const before = treeThreadMicros(gateway.pid);
    const { calls } = await closedLoop({
      ...{ port: gateway.port, request: chatRequest(gateway), connections: CONNECTIONS, forMs: FOR_MS, most },
    });
    await sleep(SETTLE_MS);
    gateway.calls += calls;
    return (treeThreadMicros(gateway.pid) - before) / calls;
  };
  for (const gateway of gateways) await run(gateway, WARM_UP * Number(gateway.name));
  const found = { 1: [], 2: [] };
  for (let round = 0; round < rounds; round++)
    for (const gateway of round % 2 === 0 ? gateways : gateways.toReversed())
      found[gateway.name].push(await run(gateway, CALLS));
  await compareRows(gateways);
  for (const { stop } of gateways) await stop();
  say(`workers: ${figure(median(found[1]))} µs with one, ${figure(median(found[2]))} µs with two`);
  return found;
}

/** The row of a table. */
export function workersRow(version, found) {
  const all = ratios(found[1], found[2]);
  const [low, high] = [0.25, 0.75].map((share) => figure(percentile(all, share), 2));
  return [
    version,
    figure(median(found[1])),
    figure(median(found[2])),
    `${figure(median(all), 2)} (${low} to ${high})`,
  ];
}
