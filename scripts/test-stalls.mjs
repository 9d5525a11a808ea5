// `npm run test:stalls`: the test files given, or some dozens with a gateway, while Postgres is stopped for seconds again and
// again, and so is the event loop of each of Jest's workers: the stalls of a busy machine, without the load. By hand.
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs, stripVTControlCharacters } from 'node:util';
import { runNode } from './child.mjs';
import { compileProduct, compileTests } from './compile.mjs';
import { main, prepare, root } from './prepare.mjs';
import { jestOptions, OF_EVERY_CHANGE } from './tiers.mjs';
import { drawn } from '../test/support/jest/drawn.cjs';
import { removeLeftovers } from '../test/support/jest/memory-folder.mjs';

const CHOSEN_FILES = 36;
const PAUSE_MS = [4_000, 7_000];
// The postmaster first, so that it makes no process that is not stopped.
const STALL = 'kill -STOP $1; pkill -STOP -P $1; sleep 7; pkill -CONT -P $1; kill -CONT $1';
const TESTS = join(root, 'scripts', 'test.mjs');
const ENVIRONMENT = join(root, 'test', 'support', 'jest', 'stalling-environment.cjs');

await main(async () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { seed: { type: 'string' }, minutes: { type: 'string', default: '30' } },
  });
  const seed = Number(values.seed ?? randomInt(1e9));
  const minutes = Number(values.minutes);
  if (!Number.isFinite(seed) || !(minutes > 0)) throw new Error('--seed and --minutes take a number');
  await prepare({ all: true, build: false });
  await Promise.all([compileTests(), compileProduct()]);
  const files = positionals.length > 0 ? positionals : gatewayFiles(seed);
  const results = await runStalled(files, seed, Date.now() + minutes * 60_000);
  const failed = results?.testResults.filter(({ status }) => status === 'failed') ?? [];
  for (const file of failed) console.log(firstFailure(file));
  console.log(
    results === null
      ? `Jest did not reach its end (--seed ${seed}).`
      : `${failed.length} of ${results.numTotalTestSuites - results.numPendingTestSuites} files and ` +
          `${results.numFailedTests} of ${results.numTotalTests - results.numPendingTests} tests failed; ` +
          `${results.numPendingTestSuites} files and ${results.numPendingTests} tests did not run (--seed ${seed}).`,
  );
  return results?.success && results.numPassedTests > 0 ? 0 : 1;
});

/** @returns what Jest writes with --json; null: it was ended before */
async function runStalled(files, seed, until) {
  console.log(`Stalls with --seed ${seed}`);
  const { startPostgres } = await import('../.test-build/src/testing/postgres.js');
  const { default: pg } = await import('pg');
  // It ends with this process, however that ends, and its folder too.
  const postgres = await startPostgres();
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  const { data_directory: cluster } = (await client.query('SHOW data_directory')).rows[0];
  const [pid] = readFileSync(join(cluster, 'postmaster.pid'), 'utf8').split('\n');

  const output = join(dirname(cluster), 'results.json');
  const options = JSON.stringify({ ...jestOptions(OF_EVERY_CHANGE).testEnvironmentOptions, seed, until });
  const args = ['--maxWorkers=2', `--env=${ENVIRONMENT}`, `--testEnvironmentOptions=${options}`];
  args.push('--json', `--outputFile=${output}`, ...files);
  Object.assign(process.env, { TEST_DATABASE_URL: postgres.url, POSTERN_TEST_ONCE: '1' });
  let group = 0;
  let isRunning = true;
  const onSpawn = (child) => (group = child.pid);
  const run = runNode([TESTS, ...args], { cwd: root, ownGroup: true, onSpawn }).finally(() => {
    isRunning = false;
    endGroup(group);
  });
  process.once('exit', () => isRunning && endGroup(group));

  // Not while Jest makes the templates of the run.
  const begun = `SELECT FROM pg_database WHERE datname LIKE 'postern_test_%'`;
  while (isRunning && (await client.query(begun)).rowCount === 0) await sleep(200);
  await client.end();
  for (let count = 1; isRunning; count++) {
    const pause = drawn(seed, `Postgres ${count}`, ...PAUSE_MS);
    await Promise.race([run, sleep(pause, undefined, { ref: false })]);
    // A process of its own group: it continues Postgres whatever becomes of this one.
    if (isRunning) await once(spawn('sh', ['-c', STALL, 'sh', pid], { detached: true }), 'exit');
  }
  const results = existsSync(output) ? JSON.parse(readFileSync(output, 'utf8')) : null;
  await postgres.stop();
  await removeLeftovers();
  return results;
}

/** What Jest has left, such as its workers when it was ended. */
function endGroup(group) {
  try {
    process.kill(-group, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

/** Those of the seed. */
function gatewayFiles(seed) {
  return readdirSync(join(root, 'test'), { recursive: true })
    .map((path) => join('test', path))
    .filter((path) => path.endsWith('.test.ts'))
    .filter((path) => readFileSync(join(root, path), 'utf8').includes('startTestGateway('))
    .sort((a, b) => drawn(seed, a, 0, 1) - drawn(seed, b, 0, 1))
    .slice(0, CHOSEN_FILES);
}

function firstFailure({ name, message, assertionResults }) {
  const test = assertionResults.find(({ status }) => status === 'failed');
  // Without the stack.
  const text = stripVTControlCharacters(test?.failureMessages[0] ?? message).split(/\n\s+at /)[0];
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return [`FAILED ${relative(root, name)} › ${test?.fullName ?? 'the file'}`, ...lines.slice(0, 12)].join(
    '\n  ',
  );
}
