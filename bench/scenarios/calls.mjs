// The closed loop: what can one core do, and what does a call cost?
import { setTimeout as sleep } from 'node:timers/promises';
import { chatRequest } from '../load/request.mjs';
import { closedLoop } from '../load/closed-loop.mjs';
import { idleMicros, meters, treeMicros } from '../cpu-time.mjs';
import { compareRows } from '../contenders/start-all.mjs';
import { median, ratios } from '../statistics.mjs';

const CONNECTIONS = 64;
const SETTLE_MS = 500;
/** A core that idled more than this share of the time was not what held the calls back. */
const MAX_IDLE = 0.1;
/** The stand-in must be this many times faster than what it serves. */
const STAND_IN_FACTOR = 3;

export async function measureCalls(bench) {
  const contenders = await bench.contenders();
  const { rounds, parity } = await runRounds(bench, contenders);
  const results = contenders.map(({ name }) => summary(name, rounds));
  return {
    connections: CONNECTIONS,
    provider: bench.provider.kind,
    results,
    rounds,
    parity,
    ...verdict(results),
  };
}

/** Measures them in turns, then compares rows with calls. */
export async function runRounds(bench, contenders) {
  const rounds = Object.fromEntries(contenders.map(({ name }) => [name, []]));
  for (let round = 1; bench.hasTimeFor(round, 0.4); round++) {
    for (const contender of contenders) {
      const measured = await measure(bench, contender);
      rounds[contender.name].push(measured);
      bench.say(`calls: round ${round}/${bench.rounds} ${contender.name}: ${tell(measured)}`);
    }
  }
  return { rounds, parity: await compareRows(contenders) };
}

/** The first calls are compiled, not measured. */
export async function warmUp(bench, contenders) {
  for (const contender of contenders) {
    bench.say(`warming up ${contender.name}`);
    await loop(contender, bench.warmUp);
  }
  return contenders;
}

async function loop(contender, bounds) {
  const measured = await closedLoop({
    port: contender.port,
    request: chatRequest(contender),
    connections: CONNECTIONS,
    ...bounds,
  });
  contender.calls += measured.calls;
  return measured;
}

async function measure({ windowMs, provider, postgres, workplace }, contender) {
  const { database } = contender;
  const rowsBefore = await database?.rows();
  const begunAt = Date.now();
  const meter = meters({
    gateway: () => treeMicros(contender.pid),
    postgres: () => (database === undefined ? null : treeMicros(postgres.pid)),
    provider: () => treeMicros(provider.pid),
    load: ownMicros,
    idle: () => idleMicros(workplace.cores.gateway),
  });
  const { calls, ms } = await loop(contender, { forMs: windowMs });
  const spent = meter.since();
  const per = (micros) => (micros === null ? null : micros / calls);
  const measured = {
    callsPerSecond: (calls / ms) * 1_000,
    gatewayMicros: per(spent.gateway),
    providerMicros: per(spent.provider),
    loadMicros: per(spent.load),
    idleShare: spent.idle === null ? null : spent.idle / 1_000 / ms,
    postgresMicros: null,
    rowsPerSecond: null,
  };
  if (database === undefined) return measured;
  // The last rows and their share of processor time: rows are visible within 250 ms.
  await sleep(SETTLE_MS);
  const late = meter.since();
  const rows = (await database.settledRows(contender.calls)) - rowsBefore;
  return {
    ...measured,
    gatewayMicros: per(late.gateway),
    postgresMicros: late.postgres === null ? null : late.postgres / rows,
    // Until the last row was in Postgres: a writer that falls behind cannot hide it.
    rowsPerSecond: (rows / ((await database.lastRecorded()) - begunAt)) * 1_000,
  };
}

/** All threads of this process. */
function ownMicros() {
  const { user, system } = process.cpuUsage();
  return user + system;
}

function summary(name, rounds) {
  const of = (field, who = name) => rounds[who]?.map((round) => round[field]) ?? [];
  const against = (other, field) => median(ratios(of(field), of(field, other)));
  const mid = (field) => median(of(field));
  return {
    name,
    callsPerSecond: mid('callsPerSecond'),
    gatewayMicros: mid('gatewayMicros'),
    postgresMicros: mid('postgresMicros'),
    providerMicros: mid('providerMicros'),
    loadMicros: mid('loadMicros'),
    idleShare: mid('idleShare'),
    rowsPerSecond: mid('rowsPerSecond'),
    toBare: against('bare', 'gatewayMicros'),
    toNginx: against('nginx', 'gatewayMicros'),
    boundBy: boundBy(mid('idleShare'), mid('gatewayMicros'), mid('providerMicros')),
  };
}

/** What, other than the contender, held its calls back; null when nothing did. Pure. */
export function boundBy(idleShare, gatewayMicros, providerMicros) {
  if (gatewayMicros === null) return null;
  if (providerMicros !== null && providerMicros * STAND_IN_FACTOR > gatewayMicros) return 'stand-in';
  if (idleShare !== null && idleShare > MAX_IDLE) return 'load';
  return null;
}

/** Calls a second of a contender that was not the bottleneck are no figure of it; Postern's are what this is all for. */
function verdict(results) {
  const postern = results.find(({ name }) => name === 'postern');
  if (!postern?.boundBy) return { refused: null };
  return {
    refused:
      `Postern was not the bottleneck of its closed loop, the ${postern.boundBy} was (its core idled ` +
      `${Math.round(100 * postern.idleShare)} %): its calls/s are not reported. Run on a quieter machine or more cores.`,
  };
}

function tell({ callsPerSecond, gatewayMicros, postgresMicros, idleShare }) {
  const parts = [`${Math.round(callsPerSecond)} calls/s`];
  if (gatewayMicros !== null) parts.push(`${gatewayMicros.toFixed(1)} µs/call`);
  if (postgresMicros !== null) parts.push(`Postgres ${postgresMicros.toFixed(1)} µs/row`);
  if (gatewayMicros !== null && idleShare !== null)
    parts.push(`its core idle ${Math.round(100 * idleShare)} %`);
  return parts.join(', ');
}
