// `npm run bench`: machine, workplace, Postgres and provider, then one scenario after the other, then the report.
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { startAll } from './contenders/start-all.mjs';
import { measureLadder } from './ladder/ladder.mjs';
import { withWorkplace } from './lifetime.mjs';
import { describeMachine } from './machine.mjs';
import { HELP, readOptions } from './options.mjs';
import { startProvider } from './provider/provider.mjs';
import { report } from './report.mjs';
import { measureCalls, warmUp } from './scenarios/calls.mjs';
import { measureLatency } from './scenarios/latency.mjs';
import { measureStreams } from './scenarios/streams.mjs';
import { measureUploads } from './scenarios/uploads.mjs';
import { root } from './workplace.mjs';

const MEASURE = {
  calls: measureCalls,
  latency: measureLatency,
  streams: measureStreams,
  uploads: measureUploads,
};
/** With many rounds and peers; a run that takes longer hangs. */
const MAX_MS = 4 * 3_600_000;

let options;
try {
  options = readOptions(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${error.message}\n\n${HELP}\n`);
  process.exit(1);
}
if (options.help) {
  process.stdout.write(`${HELP}\n`);
  process.exit(0);
}

await withWorkplace(MAX_MS, run);

async function run({ workplace, postgres }) {
  const begin = performance.now();
  const say = (line) =>
    process.stderr.write(`${((performance.now() - begin) / 1_000).toFixed(0).padStart(4)} s  ${line}\n`);
  const machine = describeMachine(workplace, postgres.version, options.names);
  const provider = await startProvider(workplace);
  const nodeArgs =
    options.cpuProf === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${resolve(options.cpuProf)}`];
  const bench = { ...options, workplace, postgres, provider, nodeArgs, say };
  /** Is there to be this round? A short run on a slow machine has fewer; `share`: of its time. */
  bench.hasTimeFor = (round, share) =>
    round <= options.rounds && (round === 1 || performance.now() - begin < share * options.budgetMs);
  let shared = null;
  /** Started and warmed up once, for all scenarios that make plain calls. */
  bench.contenders = () => (shared ??= startAll(bench, options.names).then((all) => warmUp(bench, all)));
  const outcome = { machine, options, scenarios: {}, ladder: null };
  if (options.ladder) outcome.ladder = await measureLadder(bench);
  else for (const name of options.scenarios) outcome.scenarios[name] = await MEASURE[name](bench);
  outcome.seconds = Math.round((performance.now() - begin) / 1_000);
  process.stdout.write(`\n${report(outcome)}\n`);
  const file = options.json ?? join(root, 'bench/results', `${machine.date.replaceAll(':', '')}.json`);
  await mkdir(dirname(resolve(file)), { recursive: true });
  await writeFile(file, `${JSON.stringify(outcome, null, 2)}\n`);
  process.stdout.write(`\nEverything, round by round: ${file}\n`);
  return outcome.scenarios.calls?.refused ? 1 : 0;
}
