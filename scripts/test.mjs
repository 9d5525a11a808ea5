// `npm test`: dependencies, then Jest, which compiles, with whatever arguments were given. Of a whole run, each file that
// failed runs once more, alone: what fails by chance is told, and does not fail the run.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isToldToStop, runNode } from './child.mjs';
import { flakyProblems } from './flaky.mjs';
import { main, prepare, root } from './prepare.mjs';

const JEST = join(root, 'node_modules', 'jest', 'bin', 'jest.js');
// Jest passes them on to its workers. A young generation that starts small and grows costs a tenth of their processor time.
const FLAGS = ['--min-semi-space-size=32', '--max-semi-space-size=64'];
// Node 20 optimizes a function after 66 KB of executed bytecode, but most tests end soon after: some 7 % of their time.
if (process.versions.node.startsWith('20.')) FLAGS.push('--interrupt-budget=400000');
/** More files than this that fail by chance: the machine or a helper of the tests is ill. */
const MOST_FLAKY = 3;

const args = process.argv.slice(2);
await main(async () => {
  await prepare({ all: true, build: false });
  // Whoever chooses tests works on them, and wants to see what failed.
  if (isChosen(args) || process.env.POSTERN_TEST_ONCE === '1') return jest(args);
  const problems = flakyProblems();
  for (const problem of problems) console.error(problem);
  const { code, failures } = await run(args);
  const { code: last, flaky } = await secondTry(code, failures);
  console.log(flaky === 1 ? '1 file is flaky.' : `${flaky} files are flaky.`);
  return problems.length > 0 ? 1 : last;
});

/** Once more each file that failed, alone. @returns the exit code of it all, and how many files passed only now */
async function secondTry(code, failures) {
  if (code === 0 || failures.length === 0 || isToldToStop()) return { code, flaky: 0 };
  const final = failures.find(({ isFinal }) => isFinal);
  const reason =
    final !== undefined
      ? `${final.file} › ${final.test} must never fail`
      : failures.length > MOST_FLAKY
        ? `${failures.length} files failed, and more than ${MOST_FLAKY} fail the run in any case`
        : null;
  if (reason !== null) {
    console.error(`No second try: ${reason}.`);
    return { code, flaky: 0 };
  }
  const config = args.filter((_, at) => args[at] === '--config' || args[at - 1] === '--config');
  const flaky = [];
  for (const failure of failures) {
    console.log(`\nOnce more, alone: ${failure.file}`);
    const again = await run([...config, '--runTestsByPath', failure.file]);
    if (again.code === 0) flaky.push(failure);
  }
  for (const { file, test, message } of flaky) console.log(`FLAKY ${file} › ${test}: ${message}`);
  return { code: flaky.length === failures.length ? 0 : code, flaky: flaky.length };
}

/** @returns Jest's exit code, and what test/support/jest/failures.cjs says of each file that failed */
async function run(jestArgs) {
  const folder = mkdtempSync(join(tmpdir(), 'postern-test-run-'));
  process.env.POSTERN_TEST_FAILURES = join(folder, 'failures.json');
  try {
    const code = await jest(jestArgs);
    return { code, failures: readFailures(process.env.POSTERN_TEST_FAILURES) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** None where Jest ended before its tests did. */
function readFailures(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT') return [];
    throw error;
  }
}

function jest(jestArgs) {
  return runNode([...FLAGS, JEST, ...jestArgs], { cwd: root });
}

/** Are there any arguments but those that name a configuration? */
function isChosen(given) {
  return given.some((_, at) => given[at] !== '--config' && given[at - 1] !== '--config');
}
