// What does a call take where few are made at a time? What a gateway does once for all calls of an event-loop tick, or once for
// a batch of rows, it does there for one call alone.
import { setTimeout as sleep } from 'node:timers/promises';
import { threadMicros } from '../cpu-time.mjs';
import { compareRows } from '../contenders/start-all.mjs';
import { closedLoop } from '../load/closed-loop.mjs';
import { openLoop } from '../load/open-loop.mjs';
import { chatRequest } from '../load/request.mjs';
import { figure } from '../report.mjs';
import { median, ratios } from '../statistics.mjs';

/** Connections of a closed loop, and calls a second of an open one. */
export const LOADS = [
  { connections: 1 },
  { connections: 4 },
  { connections: 16 },
  { connections: 64 },
  { ratePerSecond: 500 },
  { ratePerSecond: 1_000 },
];
const OPEN_CONNECTIONS = 64;
const WARM_UP = { connections: 16, most: 12_000, forMs: 60_000 };
/** The last rows of a round are written within it. */
const SETTLE_MS = 150;

/**
 * Short rounds of one contender after the other: what slows the machine down is the same for two rounds that follow each other.
 *
 * @param contenders those to compare; the first is what the others are compared with
 * @returns µs of processor time a call in each round, by the load and the contender's name
 */
export async function measurePartialLoad(contenders, { rounds, windowMs, say }) {
  for (const one of contenders) await load(one, WARM_UP, WARM_UP.forMs);
  const found = LOADS.map(() => Object.fromEntries(contenders.map(({ name }) => [name, []])));
  for (let round = 1; round <= rounds; round++) {
    for (const [i, bounds] of LOADS.entries()) {
      for (const one of round % 2 === 0 ? contenders.toReversed() : contenders) {
        const before = threadMicros(one.pid);
        const calls = await load(one, bounds, windowMs);
        await sleep(SETTLE_MS);
        found[i][one.name].push((threadMicros(one.pid) - before) / calls);
      }
    }
    say(
      `partial load, round ${round} of ${rounds}: ${LOADS.map((bounds, i) => `${nameOf(bounds)} ${contenders.map(({ name }) => figure(found[i][name].at(-1))).join(' / ')}`).join(', ')}`,
    );
  }
  await compareRows(contenders);
  return found;
}

/** Rows of a table: the load, µs of the first contender, and of each other its µs and its ratio with the quartiles. */
export function partialLoadRows(version, found, names) {
  const [base, ...others] = names;
  return LOADS.map((bounds, i) => [
    version,
    nameOf(bounds),
    figure(median(found[i][base])),
    ...others.flatMap((name) => [
      figure(median(found[i][name])),
      spread(ratios(found[i][name], found[i][base])),
    ]),
  ]);
}

function nameOf({ connections, ratePerSecond }) {
  return connections === undefined ? `${ratePerSecond} a second` : `${connections} at a time`;
}

function spread(all) {
  const sorted = [...all].sort((a, b) => a - b);
  const at = (share) => figure(sorted[Math.round(share * (sorted.length - 1))], 2);
  return `${figure(median(all), 2)} (${at(0.25)} to ${at(0.75)})`;
}

/** @returns how many calls were made */
async function load(contender, { ratePerSecond, connections, most }, forMs) {
  const { port } = contender;
  const request = chatRequest(contender);
  const { calls } =
    ratePerSecond === undefined
      ? await closedLoop({ port, request, connections, forMs, most })
      : await openLoop({ port, request, connections: OPEN_CONNECTIONS, ratePerSecond, forMs });
  contender.calls += calls;
  return calls;
}
