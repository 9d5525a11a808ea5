// The open loop: what does a contender add to the time of a call at a rate that it can bear?
import { chatRequest } from '../load/request.mjs';
import { openLoop } from '../load/open-loop.mjs';
import { compareRows } from '../contenders/start-all.mjs';
import { median, percentile } from '../statistics.mjs';

const CONNECTIONS = 64;
const WANTED_RATE = 1_000;
/** Rates to fall back to, where the machine cannot bear the wanted one. */
const RATES = [WANTED_RATE, 500, 250, 100];
/** A rate is borne when the slowest contender is done with most calls in this time. */
const BORNE_MS = 20;
const TRIAL_MS = 500;

export async function measureLatency(bench) {
  const contenders = await bench.contenders();
  const ratePerSecond = await bearableRate(bench, contenders);
  const rounds = Object.fromEntries(contenders.map(({ name }) => [name, []]));
  for (let round = 1; bench.hasTimeFor(round, 0.6); round++) {
    for (const contender of contenders) {
      const { latencies, lateness } = await loop(contender, ratePerSecond, bench.latencyMs);
      const measured = {
        p50: percentile(latencies, 0.5),
        p99: percentile(latencies, 0.99),
        generatorP99: percentile(lateness, 0.99),
      };
      rounds[contender.name].push(measured);
      const { p50, p99 } = measured;
      bench.say(
        `latency: round ${round}/${bench.rounds} ${contender.name}: p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`,
      );
    }
  }
  const parity = await compareRows(contenders);
  const results = contenders.map(({ name }) => summary(name, rounds));
  return { ratePerSecond, connections: CONNECTIONS, results, rounds, parity };
}

async function loop(contender, ratePerSecond, forMs) {
  const { port } = contender;
  const request = chatRequest(contender);
  const measured = await openLoop({ port, request, ratePerSecond, connections: CONNECTIONS, forMs });
  contender.calls += measured.calls;
  return measured;
}

async function bearableRate(bench, contenders) {
  for (const rate of RATES) {
    let slowest = 0;
    for (const contender of contenders) {
      slowest = Math.max(slowest, percentile((await loop(contender, rate, TRIAL_MS)).latencies, 0.9));
    }
    if (slowest <= BORNE_MS) return rate;
    bench.say(`latency: ${rate} calls/s are too many here (p90 ${slowest.toFixed(1)} ms)`);
  }
  return RATES.at(-1);
}

function summary(name, rounds) {
  const of = (field, who = name) => rounds[who]?.map((round) => round[field]) ?? [];
  // Round by round, so that what slows a machine down for a while cancels.
  const added = (field) => median(of(field, 'direct').map((value, i) => of(field)[i] - value));
  return {
    name,
    p50: median(of('p50')),
    p99: median(of('p99')),
    addedP50: name === 'direct' ? null : added('p50'),
    addedP99: name === 'direct' ? null : added('p99'),
    generatorP99: median(of('generatorP99')),
  };
}
