import { fork } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { compileProduct, compileTests } from '../../../scripts/compile.mjs';

/** What is tested (some tests start dist/), and one cluster for the run (or TEST_DATABASE_URL), with a migrated template that each test file clones. */
export default async function globalSetup({ testPathPatterns, testNamePattern }) {
  if (process.env.POSTERN_TEST_FULL === '1') {
    // The workers have it from here.
    process.env.POSTERN_FUZZ_SEED ??= String(randomInt(2 ** 31));
    process.stdout.write(
      `\nPOSTERN_FUZZ_SEED=${process.env.POSTERN_FUZZ_SEED} repeats the random cases of this run.\n`,
    );
  }
  if (testPathPatterns.patterns.length > 0 || testNamePattern) process.env.POSTERN_TESTS_CHOSEN ??= '1';
  await Promise.all([compileTests(), compileProduct()]);
  // Detached: Ctrl-C in a terminal ends Jest, and this after it.
  const keeper = fork(new URL('keeper.mjs', import.meta.url), { execArgv: [], detached: true });
  const [message] = await Promise.race([once(keeper, 'message'), once(keeper, 'exit')]);
  if (message?.server === undefined) throw new Error('no Postgres for the tests: its message is above');
  const { server, template, memory } = message;
  globalThis.keeper = keeper;
  if (memory !== null) process.env.TMPDIR = memory;
  process.env.TEST_DATABASE_URL = server;
  process.env.POSTERN_TEST_SERVER = server;
  process.env.POSTERN_TEST_TEMPLATE = template;
}
