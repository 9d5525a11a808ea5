// `npm run bench:summary -- [NODE …]`: the measurements that Postern promises, in one table, for each of these Node.js programs.
import { execFileSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { startBare } from './contenders/bare.mjs';
import { startWithKey } from './contenders/keyed.mjs';
import { compareRows } from './contenders/start-all.mjs';
import { withWorkplace } from './lifetime.mjs';
import { loadSideBySide, WARM_UP } from './load/side-by-side.mjs';
import { describeMachine } from './machine.mjs';
import { startProvider } from './provider/provider.mjs';
import { figure, head, table } from './report.mjs';
import { LATENCY_COLUMNS, latencyRows, measureAddedLatency } from './scenarios/added-latency.mjs';
import { CACHE_COLUMNS, cacheRow, measureCache } from './scenarios/cache.mjs';
import { measurePartialLoad, partialLoadRows } from './scenarios/partial-load.mjs';
import { measurePrompts, promptRows } from './scenarios/prompts.mjs';
import { measureStreams } from './scenarios/streams.mjs';
import { measureWorkers, WORKER_COLUMNS, workersRow } from './scenarios/workers.mjs';
import { measureStart } from './start-cost.mjs';
import { median, ratios } from './statistics.mjs';
import { root } from './workplace.mjs';

const HELP = `Usage: npm run bench:summary -- [options] [NODE …]

For each Node.js program (this one): the processor time of a call, of one with limits and of a stream's chunk, against the
bare proxy on the same core at the same time; that of real prompts, and with few calls at a time; the memory of a thousand
open streams; what a start costs. Some 8 minutes each.

  --reps N       repetitions, each with processes of its own (4)
  --seconds N    of each of the three rounds of a repetition (5)
  --prompts      only real prompts
  --partial      only few calls at a time
  --cache        only the response cache
  --latency      only the time that is added to a call
  --workers      only two workers and one
  --rounds N     of each load with few calls at a time, of the cache, of times and of workers (12)`;
const ROUNDS = 3;
const STARTS = 4;
const IDLE_MS = 3_000;
const WATCH_MS = 10_000;
const REST_MS = 20_000;
const PARTIAL_MS = 500;
const MAX_MS = 2 * 3_600_000;
/** None of them is reached. */
const LIMITS = { limits: { requests_per_minute: 1e9, concurrent_requests: 100_000 } };
/** For these the model must be certain, and have a price. */
const USD = { models: ['gpt-4o-mini'], budgets: [{ usd: '1000000', period: 'month' }] };
const PRICE = { catalog: 'default', model: 'gpt-4o-mini', input: '0.15', output: '0.6' };
const TOKENS = { limits: { tokens_per_minute: 1e9 }, budgets: [{ tokens: 1e12, period: 'month' }] };

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    reps: { type: 'string', default: '4' },
    seconds: { type: 'string', default: '5' },
    prompts: { type: 'boolean', default: false },
    partial: { type: 'boolean', default: false },
    cache: { type: 'boolean', default: false },
    latency: { type: 'boolean', default: false },
    workers: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '12' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(HELP);
  process.exit(0);
}
const programs = positionals.length > 0 ? positionals : [process.execPath];
const say = (line) => process.stderr.write(`${new Date().toISOString().slice(11, 19)}  ${line}\n`);

/** Parts that were asked for; without any, all are measured. */
const parts = ['prompts', 'partial', 'cache', 'latency', 'workers'].filter((part) => values[part]);
const has = (part) => parts.length === 0 || parts.includes(part);
const bounds = { reps: Number(values.reps), windowMs: Number(values.seconds) * 1_000, say };
const OF_PROMPTS = [
  ['bare', startBare],
  ['key', (bench) => startWithKey(bench, {})],
  ['budget', (bench) => startWithKey(bench, USD, PRICE)],
];

await withWorkplace(MAX_MS, run);

async function run({ workplace, postgres }) {
  const provider = await startProvider(workplace);
  const machine = describeMachine(workplace, postgres.version, []);
  const rows = [];
  const prompts = [];
  const partial = [];
  const [cache, latency, workers] = [[], [], []];
  const rounds = Number(values.rounds);
  for (const node of programs) {
    const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim();
    const bench = { workplace, postgres, provider, node };
    if (has('prompts')) prompts.push(...promptRows(version, await measurePrompts(bench, OF_PROMPTS, bounds)));
    if (has('partial')) partial.push(...(await partialRowsOf(bench, version)));
    const of = { rounds, say: (line) => say(`${version}, ${line}`) };
    if (has('cache')) cache.push(cacheRow(version, await measureCache(bench, { ...of, calls: 400 })));
    if (has('latency')) latency.push(...latencyRows(version, await measureAddedLatency(bench, of)));
    if (has('workers')) workers.push(workersRow(version, await measureWorkers(bench, of)));
    if (parts.length > 0) continue;
    const calls = await measureCalls(bench, version);
    const { toBare, mebibytes } = await measureOpenStreams(bench, version);
    const starts = await measureStarts(bench);
    const mid = (field) => figure(median(starts.map((one) => one[field])), 0);
    rows.push([
      version,
      figure(median(calls.bare)),
      figure(median(calls.postern)),
      spread(ratios(calls.postern, calls.bare)),
      figure(added(calls.limits, calls.postern)),
      figure(added(calls.tokens, calls.postern)),
      figure(toBare, 2),
      figure(mebibytes, 0),
      mid('cpuMs'),
      mid('wallMs'),
      mid('idleMb'),
      figure(starts.at(-1).idlePercent, 2),
      figure(starts.at(-1).wakeUps),
      figure(starts.at(-1).restMb, 0),
    ]);
  }
  const columns = ['Node', 'bare µs', 'µs a call', '/ bare', 'limits +µs', 'tokens +µs', 'chunk / bare'];
  console.log(head(machine, { rounds: `${values.reps} × ${ROUNDS}`, windowMs: values.seconds * 1_000 }));
  const tables = [
    [['Node', 'KiB of prose', 'chunks', 'bare µs', 'key +µs', 'budget and models +µs'], prompts],
    [['Node', 'calls', 'bare µs', 'µs a call', '/ bare (quartiles)'], partial],
    [CACHE_COLUMNS, cache],
    [LATENCY_COLUMNS, latency],
    [WORKER_COLUMNS, workers],
    [
      [
        ...columns,
        'MiB for 1,000 streams',
        'CPU ms to start',
        'ms to start',
        'MB idle',
        'idle, % of a core',
        'wake-ups/s',
        'MB at rest',
      ],
      rows,
    ],
  ];
  for (const [titles, lines] of tables) if (lines.length > 0) console.log(table(titles, lines));
}

/** With a price, as most gateways have. */
async function partialRowsOf(bench, version) {
  const contenders = [];
  for (const one of [await startBare(bench), await startWithKey(bench, {}, PRICE)])
    contenders.push({ ...one, calls: 0 });
  const rounds = Number(values.rounds);
  const found = await measurePartialLoad(contenders, {
    rounds,
    windowMs: PARTIAL_MS,
    say: (line) => say(`${version}, ${line}`),
  });
  for (const { stop } of contenders) await stop();
  return partialLoadRows(
    version,
    found,
    contenders.map(({ name }) => name),
  );
}

/** Bare proxy, a key without limits, one with limits of requests, one with limits of tokens, each with a gateway of its own, in turns. */
async function measureCalls(bench, version) {
  const found = { bare: [], postern: [], limits: [], tokens: [] };
  const starters = [
    ['bare', () => startBare(bench)],
    ['postern', () => startWithKey(bench, {})],
    ['limits', () => startWithKey(bench, LIMITS)],
    ['tokens', () => startWithKey(bench, TOKENS)],
  ];
  for (let rep = 1; rep <= Number(values.reps); rep++) {
    const contenders = [];
    // The one that starts first gets the first call.
    for (const [name, start] of rep % 2 === 0 ? starters.toReversed() : starters)
      contenders.push({ ...(await start()), name, calls: 0 });
    await loadSideBySide(contenders, WARM_UP);
    const rounds = [];
    for (let round = 0; round < ROUNDS; round++)
      rounds.push(await loadSideBySide(contenders, { forMs: Number(values.seconds) * 1_000 }));
    await compareRows(contenders);
    for (const { stop } of contenders) await stop();
    contenders.forEach(({ name }, i) => found[name].push(median(rounds.map((round) => round[i]))));
    say(
      `${version}, repetition ${rep}: ${Object.entries(found).map(([name, all]) => `${name} ${figure(all.at(-1))} µs`)}`,
    );
  }
  return found;
}

async function measureOpenStreams(bench, version) {
  const names = ['bare', 'postern'];
  const { results, held } = await measureStreams({
    ...bench,
    names,
    compared: names,
    rounds: Number(values.reps),
    windowMs: Number(values.seconds) * 1_000,
    baselineMs: 2_000,
    warmUp: null,
    hasTimeFor: (round) => round <= Number(values.reps),
    say: (line) => say(`${version}, ${line}`),
  });
  const { idle, steps } = held.postern;
  return { toBare: results[1].toBare, mebibytes: (steps.at(-1).resident - idle) / 2 ** 20 };
}

async function measureStarts({ workplace, postgres, node }) {
  const build = { name: 'start', folder: root, database: await postgres.createDatabase() };
  const starts = [];
  // The first one migrates.
  for (let i = 0; i <= STARTS; i++) {
    const isLast = i === STARTS;
    const how = { node, idleMs: IDLE_MS, ...(isLast && { watchMs: WATCH_MS, restMs: REST_MS }) };
    starts.push(await measureStart(workplace, build, how));
  }
  return starts.slice(1);
}

function added(with_, without) {
  return median(with_.map((one, i) => one - without[i]));
}

function spread(all) {
  return `${figure(median(all), 2)} (${figure(Math.min(...all), 2)} to ${figure(Math.max(...all), 2)})`;
}
