// `npm test`: dependencies, then Jest, which compiles, with whatever arguments were given. Of a whole run, each file that
// failed runs once more, alone: what fails by chance is told, and does not fail the run.
//
// --tier <name>     of scripts/tiers.mjs; else that of the files that the arguments name
// --reached <files> of `npm run check -- --changed`: a run of these only, with a second try as in a whole one
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isToldToStop, runNode } from './child.mjs';
import { flakyProblems } from './flaky.mjs';
import { main, prepare, root, StepError } from './prepare.mjs';
import { filesOf, OF_EVERY_CHANGE, testFiles, TIERS } from './tiers.mjs';

const JEST = join(root, 'node_modules', 'jest', 'bin', 'jest.js');
// Jest passes them on to its workers. A young generation that starts small and grows costs a tenth of their processor time.
const FLAGS = ['--min-semi-space-size=32', '--max-semi-space-size=64'];
// Node 20 optimizes a function after 66 KB of executed bytecode, but most tests end soon after: some 7 % of their time.
if (process.versions.node.startsWith('20.')) FLAGS.push('--interrupt-budget=400000');
/** More files than this that fail by chance: the machine or a helper of the tests is ill. */
const MOST_FLAKY = 3;

await main(async () => {
  await prepare({ all: true, build: false });
  const { tier, reached, rest } = options(process.argv.slice(2));
  const tiers = tier === null ? await tiersOf(rest) : [tier];
  process.env.POSTERN_TEST_TIERS = tiers.join(',');
  // Whoever chooses tests works on them, and wants to see what failed.
  const isChosen = rest.length > 0;
  // Neither does what was reached or runs once more, of which a part may need what this machine does not have.
  if (!isChosen) process.env.POSTERN_TESTS_CHOSEN = '0';
  // By hand, rare races and random cases are looked for, which a second try would hide.
  const isByHand = tiers.every((name) => TIERS[name].isByHand);
  if (isChosen || isByHand || process.env.POSTERN_TEST_ONCE === '1') return jest([...reached, ...rest]);
  const problems = flakyProblems();
  for (const problem of problems) console.error(problem);
  const { code, failures } = await run(reached);
  const { code: last, flaky } = await secondTry(code, failures);
  const leftOut = tier === null ? ` ${leftOutBy(tiers)}` : '';
  console.log(`${flaky === 1 ? '1 file is' : `${flaky} files are`} flaky.${leftOut}`);
  return problems.length > 0 ? 1 : last;
});

/** @returns what is not for Jest, and the rest */
function options(args) {
  const at = args.indexOf('--tier');
  const tier = at === -1 ? null : (args[at + 1] ?? '');
  if (tier !== null && TIERS[tier] === undefined)
    throw new StepError(`--tier is one of ${Object.keys(TIERS).join(', ')}`, 1);
  const rest = tier === null ? args : args.toSpliced(at, 2);
  if (rest[0] !== '--reached') return { tier, reached: [], rest };
  return { tier, reached: ['--runTestsByPath', ...rest.slice(1)], rest: [] };
}

/** Those of the files that Jest's arguments name, which are by hand only if all of these files are. */
async function tiersOf(jestArgs) {
  const { buildArgv } = createRequire(createRequire(import.meta.url).resolve('jest'))('jest-cli');
  const { _: paths, findRelatedTests } = await buildArgv(jestArgs);
  if (paths.length === 0 || findRelatedTests) return ['worker'];
  const patterns = paths.map((path) => new RegExp(path, 'i'));
  const named = [...testFiles()].filter(([file]) =>
    patterns.some((pattern) => pattern.test(join(root, file))),
  );
  const tiers = Object.keys(TIERS).filter((name) => named.some(([, tier]) => tier === name));
  const ofEveryChange = tiers.filter((name) => OF_EVERY_CHANGE.includes(name));
  if (ofEveryChange.length > 0) return ofEveryChange;
  return tiers.length > 0 ? tiers : ['worker'];
}

/** What `npm test` does not run. */
function leftOutBy(tiers) {
  const others = Object.entries(TIERS).filter(([name]) => !tiers.includes(name));
  const listed = others
    .filter(([, { isByHand }]) => !isByHand)
    .map(([name, { what, command }]) => `${filesOf(name).length} files ${what} (${command})`);
  const byHand = others.filter(([, { isByHand }]) => isByHand).map(([, { command }]) => command);
  return `Left out: ${listed.join(', ')}; by hand: ${byHand.join(', ')}, npm run test:stalls.`;
}

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
  const flaky = [];
  for (const failure of failures) {
    console.log(`\nOnce more, alone: ${failure.file}`);
    const again = await run(['--runTestsByPath', failure.file]);
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
