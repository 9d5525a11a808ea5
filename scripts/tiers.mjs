// Which command runs a test file: what the file needs is the end of its name. Read by jest.config.js, scripts/test.mjs,
// scripts/check.mjs and test/architecture/tiers.test.ts.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { read, root } from './files.mjs';

/** Without POSTERN_TEST_FULL=1: they install hundreds of megabytes. */
const LARGE = ['test/docs/site', 'test/identity/clients/', 'test/policies-by-url/presidio'];

/**
 * `endings`: of the files' names. `workers`: how many files run at once. `isFull`: with POSTERN_TEST_FULL=1, which is many
 * times as much and uses the disk. `patience`: what the gateway's own time limits are multiplied by
 * (src/platform/patience.ts), if not by 20. `also`: files of other tiers that run here in full.
 *
 * Those of `.ci/run` and `npm run check` first, in their order.
 */
export const TIERS = {
  processes: {
    command: 'npm run test:processes',
    endings: ['.processes.ts'],
    // They wait for the processes that they start.
    workers: 8,
    what: 'that start processes',
  },
  browser: {
    command: 'npm run test:browser',
    endings: ['.browser.ts'],
    // Browsers wait for little: more of them at once would only make each page slow.
    workers: 4,
    what: 'of the console in a browser',
  },
  worker: {
    command: 'npm test',
    endings: ['.test.ts', '.spec.ts'],
    // Of two processors: tests also wait, for time limits and for each other.
    workers: 8,
    what: 'that run in the process of the tests',
  },
  tools: {
    command: 'npm run test:tools',
    endings: ['.tools.ts'],
    workers: 8,
    what: 'of the commands that install, build, start, lint and generate',
    without: process.env.POSTERN_TEST_FULL === '1' ? [] : LARGE,
  },
  faults: {
    command: 'npm run test:faults',
    endings: ['.faults.ts'],
    workers: 1,
    isByHand: true,
    isFull: true,
    // As in production.
    patience: 1,
    what: 'of load, kills, broken databases and full disks',
    also: [
      'test/config/data-dir-lock.processes.ts',
      'test/database/embedded-postgres-crash.processes.ts',
      'test/database/upgrade.test.ts',
      'test/idempotency/duplicates.test.ts',
      'test/limits/rate.processes.ts',
      'test/limits/shared-limits.test.ts',
      'test/observability/closed-labels.test.ts',
      'test/process/idempotency.processes.ts',
      'test/process/log-faults.processes.ts',
      'test/request-log/journal-recovery.test.ts',
      'test/request-log/log-row.test.ts',
      'test/wire/aborts.test.ts',
      'test/wire/flat-memory.processes.ts',
    ],
  },
  fuzz: {
    command: 'npm run test:fuzz',
    endings: [],
    workers: 8,
    isByHand: true,
    isFull: true,
    what: 'with random cases',
    get also() {
      const random = /from '\S*\/(support\/property|random)\.js'/;
      return [...testFiles().keys()].filter(
        (path) => path.startsWith('test/fuzz/') || random.test(read(path)),
      );
    },
  },
  // SINK_ROWS     rows of the proof (1000000), and of the rate up to 400000
  // SINK_KILLS    processes killed while they are sent (20)
  // SINK_ONLY     `warehouse` (ClickHouse) or `stream` (JetStream): the other sink is paused in the proof
  // SINK_MINUTES  the proof inserts rows for as long at most (20)
  // SINK_RATE     least rows/s of one leader, with a lag of 10 s at most at 3,000 rows/s (0: nothing timed is checked)
  sinks: {
    command: 'npm run test:sinks',
    endings: ['.real.ts'],
    workers: 1,
    isByHand: true,
    isFull: true,
    patience: 1,
    what: 'of sinks with the real ClickHouse (its engine, chdb) and NATS, which pip and go install',
  },
  helm: {
    command: 'npm run test:helm',
    endings: ['.chart.ts'],
    workers: 1,
    isByHand: true,
    what: 'of the Helm chart',
  },
};

export const OF_EVERY_CHANGE = Object.keys(TIERS).filter((name) => !TIERS[name].isByHand);

/** @returns the name of a test file's tier; undefined: it is no test file */
export const tierOf = (path) =>
  Object.keys(TIERS).find((name) => TIERS[name].endings.some((ending) => path.endsWith(ending)));

/** All test files by their paths from the root, with their tiers. */
export function testFiles() {
  const files = new Map();
  for (const folder of ['test', 'src'])
    for (const name of readdirSync(join(root, folder), { recursive: true })) {
      const path = join(folder, name).replaceAll('\\', '/');
      const tier = tierOf(path);
      if (tier !== undefined) files.set(path, tier);
    }
  return files;
}

/** The files that a run of a tier has: none of LARGE, if it is not asked for. */
export function filesOf(name) {
  const { without = [] } = TIERS[name];
  return [...testFiles()]
    .filter(([path, tier]) => tier === name && !without.some((start) => path.startsWith(start)))
    .map(([path]) => path);
}

/** What Jest runs, and how. */
export function jestOptions(names) {
  const tiers = names.map((name) => TIERS[name]);
  if (tiers.some(({ isFull }) => isFull)) process.env.POSTERN_TEST_FULL ??= '1';
  return {
    testMatch: tiers.flatMap(({ endings, also = [] }) => [
      ...endings.map((ending) => `<rootDir>/{test,src}/**/*${ending}`),
      ...also.map((path) => `<rootDir>/${path}`),
    ]),
    testPathIgnorePatterns: ['/node_modules/', ...tiers.flatMap(({ without = [] }) => without)],
    maxWorkers: Math.min(...tiers.map(({ workers }) => workers)),
    testEnvironmentOptions: { patience: Math.min(...tiers.map(({ patience = 20 }) => patience)) },
  };
}
