// `npm run bench:summary -- [NODE …]`: the measurements that Postern promises, in one table, for each of these Node.js programs.
import { execFileSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { startBare } from './contenders/bare.mjs';
import { startPostern } from './contenders/postern.mjs';
import { compareRows } from './contenders/start-all.mjs';
import { withWorkplace } from './lifetime.mjs';
import { loadSideBySide, WARM_UP } from './load/side-by-side.mjs';
import { describeMachine } from './machine.mjs';
import { startProvider } from './provider/provider.mjs';
import { figure, head, table } from './report.mjs';
import { measurePrompts, promptRows } from './scenarios/prompts.mjs';
import { measureStreams } from './scenarios/streams.mjs';
import { measureStart } from './start-cost.mjs';
import { median, ratios } from './statistics.mjs';
import { root } from './workplace.mjs';

const HELP = `Usage: npm run bench:summary -- [options] [NODE …]

For each Node.js program (this one): the processor time of a call, of one with limits and of a stream's chunk, against the
bare proxy on the same core at the same time; that of real prompts; the memory of a thousand open streams; what a start costs.
Some 6 minutes each.

  --reps N       repetitions, each with processes of its own (4)
  --seconds N    of each of the three rounds of a repetition (5)
  --prompts      only real prompts`;
const ADMIN_TOKEN = 'bench-summary-admin-token-0123456789abcdef';
const ROUNDS = 3;
const STARTS = 4;
const IDLE_MS = 3_000;
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
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(HELP);
  process.exit(0);
}
const programs = positionals.length > 0 ? positionals : [process.execPath];
const say = (line) => process.stderr.write(`${new Date().toISOString().slice(11, 19)}  ${line}\n`);

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
  for (const node of programs) {
    const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim();
    const bench = { workplace, postgres, provider, node };
    prompts.push(...promptRows(version, await measurePrompts(bench, OF_PROMPTS, bounds)));
    if (values.prompts) continue;
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
    ]);
  }
  const columns = ['Node', 'bare µs', 'µs a call', '/ bare', 'limits +µs', 'tokens +µs', 'chunk / bare'];
  console.log(head(machine, { rounds: `${values.reps} × ${ROUNDS}`, windowMs: values.seconds * 1_000 }));
  console.log(
    table(['Node', 'KiB of prose', 'chunks', 'bare µs', 'key +µs', 'budget and models +µs'], prompts),
  );
  if (values.prompts) return;
  console.log(
    table([...columns, 'MiB for 1,000 streams', 'CPU ms to start', 'ms to start', 'MB idle'], rows),
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

/** A gateway, and calls with a key that has these members. @param price of a model */
async function startWithKey(bench, members, price = null) {
  const gateway = await startPostern(bench, { env: { ADMIN_TOKEN } });
  if (price !== null) await create(gateway, 'prices', price);
  const { key } = await create(gateway, 'keys', { team: 'default', name: 'bench', ...members });
  return { ...gateway, headers: { Authorization: `Bearer ${key}` } };
}

async function create({ port }, what, members) {
  const response = await fetch(`http://127.0.0.1:${port}/admin/v1/${what}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify(members),
  });
  if (response.status !== 201) throw new Error(`no ${what}: ${await response.text()}`);
  return response.json();
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
  for (let i = 0; i <= STARTS; i++)
    starts.push(await measureStart(workplace, build, { node, idleMs: IDLE_MS }));
  return starts.slice(1);
}

function added(with_, without) {
  return median(with_.map((one, i) => one - without[i]));
}

function spread(all) {
  return `${figure(median(all), 2)} (${figure(Math.min(...all), 2)} to ${figure(Math.max(...all), 2)})`;
}
