// Streamed answers: what does a chunk cost, and what does a thousand open streams?
import { setTimeout as sleep } from 'node:timers/promises';
import { meters, treeMicros } from '../cpu-time.mjs';
import { chatRequest, streamRequest } from '../load/request.mjs';
import { closedLoop } from '../load/closed-loop.mjs';
import { Streams } from '../load/streams.mjs';
import { residentBytes } from '../memory.mjs';
import { EVENT_WIRE_BYTES } from '../provider/answer.mjs';
import { startNodeProvider } from '../provider/node.mjs';
import { compareRows, startAll } from '../contenders/start-all.mjs';
import { median, ratios } from '../statistics.mjs';

/** 100 streams with a chunk every 20 ms: 5,000 chunks a second, each in a read of its own. */
const BUSY = { streams: 100, everyMs: 20 };
/** Held open at the pace of a slow model; of hardly any cost themselves. */
const HELD_EVERY_MS = 2_000;
const OPEN = [10, 100, 1_000];
const CONNECTIONS = 32;
const ENDLESS = 1_000_000;
/** The garbage of a start and of opening the streams is collected in this time. */
const WARM_UP_MS = 15_000;
/** A garbage collector may release memory late. */
const SETTLE_MS = 1_000;

const HOLDING = ['bare', 'postern'];

export async function measureStreams(bench) {
  const provider = await startNodeProvider(bench.workplace);
  const contenders = await startAll({ ...bench, provider }, bench.compared);
  const rounds = Object.fromEntries(contenders.map(({ name }) => [name, []]));
  // All at once, so that other programs slow them all down alike. The same streams for every round: opening and
  // ending them leaves garbage, which is collected seconds later.
  const busy = [];
  for (const contender of contenders) busy.push(await openBusy(contender));
  await sleep(WARM_UP_MS);
  for (let round = 1; bench.hasTimeFor(round, 0.6); round++) {
    const measured = await chunkMicros(contenders, busy, bench.windowMs);
    for (const [i, { name }] of contenders.entries()) {
      rounds[name].push({ chunkMicros: measured[i] });
      bench.say(`streams: round ${round}/${bench.rounds} ${name}: ${figure(measured[i])} µs/chunk`);
    }
  }
  for (const streams of busy) {
    streams.leaveAll();
    streams.check();
  }
  await sleep(SETTLE_MS);
  const parity = { busy: await compareRows(contenders) };
  for (const { stop } of contenders) await stop();
  // Anew: what the busy ones left in memory would hide what the held ones take.
  const fresh = await startAll(
    { ...bench, provider },
    HOLDING.filter((name) => bench.names.includes(name)),
  );
  const held = {};
  for (const contender of fresh) held[contender.name] = await heldStreams(bench, contender);
  parity.held = await compareRows(fresh);
  for (const { stop } of fresh) await stop();
  await provider.stop();
  const of = (name) => rounds[name]?.map(({ chunkMicros }) => chunkMicros) ?? [];
  const results = contenders.map(({ name }) => ({
    name,
    chunkMicros: median(of(name)),
    toBare: median(ratios(of(name), of('bare'))),
  }));
  return { busy: BUSY, results, rounds, held, parity };
}

async function openBusy(contender) {
  const streams = new Streams();
  const request = streamRequest(contender, { chunks: ENDLESS, everyMs: BUSY.everyMs });
  await streams.addMany(BUSY.streams, contender.port, request);
  contender.calls += streams.begun;
  return streams;
}

/** µs of processor time per chunk, of many streams at a lively pace, of all contenders at the same time. */
async function chunkMicros(contenders, busy, forMs) {
  const before = busy.map(({ bytes }) => bytes);
  const meter = meters(Object.fromEntries(contenders.map(({ name, pid }) => [name, () => treeMicros(pid)])));
  await sleep(forMs);
  const spent = meter.since();
  return contenders.map(({ name }, i) => {
    // By bytes, for some gateways put several chunks into one write.
    const chunks = (busy[i].bytes - before[i]) / EVENT_WIRE_BYTES;
    return spent[name] === null ? null : spent[name] / chunks;
  });
}

/**
 * Memory and, unless `bench.warmUp` is null, the cost of other calls while ever more streams are held open; then memory once
 * they are gone.
 */
async function heldStreams(bench, contender) {
  const streams = new Streams();
  const request = streamRequest(contender, { chunks: ENDLESS, everyMs: HELD_EVERY_MS });
  // The code comes into memory with the first ones, and stays.
  await streams.addMany(OPEN[0], contender.port, request);
  await sleep(SETTLE_MS);
  streams.leaveAll();
  await sleep(SETTLE_MS);
  const idle = residentBytes(contender.pid);
  const resident = async (open) => {
    await streams.addMany(open - streams.open.size, contender.port, request);
    await sleep(SETTLE_MS);
    return residentBytes(contender.pid);
  };
  const steps = [];
  for (const open of OPEN) {
    steps.push({ open, resident: await resident(open), callMicros: null });
    bench.say(
      `streams: ${contender.name} holds ${open}: ${megabytes(steps.at(-1).resident - idle)} above idle`,
    );
  }
  const [after, again] = [await without(bench, streams, contender, idle), await resident(OPEN.at(-1))];
  bench.say(`streams: ${contender.name} holds ${OPEN.at(-1)} again: ${megabytes(again - idle)} above idle`);
  const afterAgain = await without(bench, streams, contender, idle);
  contender.calls += streams.begun;
  if (bench.warmUp === null) return { idle, steps, after, again, afterAgain };
  // In a second pass, so that the garbage of these calls is not counted as the streams' memory.
  await calls(contender, bench.warmUp);
  for (const step of steps) step.callMicros = await callsBesideStreams(bench, contender, request, step.open);
  return { idle, steps, after, again, afterAgain };
}

/** Leaves all; resident bytes when they are back at the idle ones, or after a while. */
async function without({ baselineMs, say }, streams, contender, idle) {
  streams.check();
  streams.leaveAll();
  let resident = null;
  for (const deadline = performance.now() + baselineMs; performance.now() < deadline;) {
    await sleep(500);
    resident = residentBytes(contender.pid);
    if (resident <= idle * 1.05) break;
  }
  say(`streams: ${contender.name} without them: ${megabytes(resident - idle)} above idle`);
  return resident;
}

async function callsBesideStreams(bench, contender, request, open) {
  const streams = new Streams();
  await streams.addMany(open, contender.port, request);
  const meter = meters({ gateway: () => treeMicros(contender.pid) });
  const made = await calls(contender, { forMs: bench.windowMs });
  const { gateway } = meter.since();
  streams.leaveAll();
  streams.check();
  contender.calls += streams.begun;
  const micros = gateway === null ? null : gateway / made;
  bench.say(`streams: ${contender.name} beside ${open} open streams: ${figure(micros)} µs/call`);
  await sleep(200);
  return micros;
}

async function calls(contender, bounds) {
  const request = chatRequest(contender);
  const made = await closedLoop({ port: contender.port, request, connections: CONNECTIONS, ...bounds });
  contender.calls += made.calls;
  return made.calls;
}

function figure(value) {
  return value === null ? '?' : value.toFixed(1);
}

function megabytes(bytes) {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
