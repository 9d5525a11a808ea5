// The tests run as the ES modules that they and src/ are compiled to (scripts/compile.mjs), in plain Node: see
// test/support/jest/runtime.cjs.
export default {
  testEnvironment: '<rootDir>/test/support/jest/environment.cjs',
  runtime: '<rootDir>/test/support/jest/runtime.cjs',
  roots: ['<rootDir>/test', '<rootDir>/src'],
  testMatch: ['<rootDir>/test/**/*.test.ts', '<rootDir>/src/**/*.spec.ts'],
  moduleFileExtensions: ['ts', 'js', 'mjs', 'cjs', 'json', 'node'],
  reporters: ['default', '<rootDir>/test/support/jest/failures.cjs'],
  testSequencer: '<rootDir>/test/support/jest/sequencer.cjs',
  transform: {},
  // For --findRelatedTests and --onlyChanged, which read the sources.
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  globalSetup: '<rootDir>/test/support/jest/global-setup.mjs',
  globalTeardown: '<rootDir>/test/support/jest/global-teardown.mjs',
  // Of two processors: tests also wait, for time limits and for processes that they start.
  maxWorkers: 8,
  // Connections that fetch keeps open hold a worker for seconds.
  workerGracefulExitTimeout: 10_000,
  // Makes Jest run even one file in a worker: what a failed test leaves open must not keep Jest from its end.
  workerIdleMemoryLimit: '2GB',
  // A bound for what hangs, not a measure: the machine may be busy with other things.
  testTimeout: 240_000,
};
