// The tests run as the ES modules that they and src/ are compiled to (scripts/compile.mjs), in plain Node: see
// test/support/jest/runtime.cjs.
import { jestOptions, OF_EVERY_CHANGE } from './scripts/tiers.mjs';

export default {
  // Named by scripts/test.mjs.
  ...jestOptions(process.env.POSTERN_TEST_TIERS?.split(',') ?? OF_EVERY_CHANGE),
  testEnvironment: '<rootDir>/test/support/jest/environment.cjs',
  runtime: '<rootDir>/test/support/jest/runtime.cjs',
  roots: ['<rootDir>/test', '<rootDir>/src'],
  moduleFileExtensions: ['ts', 'js', 'mjs', 'cjs', 'json', 'node'],
  reporters: ['default', '<rootDir>/test/support/jest/failures.cjs'],
  testSequencer: '<rootDir>/test/support/jest/sequencer.cjs',
  transform: {},
  // For --findRelatedTests and --onlyChanged, which read the sources.
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  globalSetup: '<rootDir>/test/support/jest/global-setup.mjs',
  globalTeardown: '<rootDir>/test/support/jest/global-teardown.mjs',
  // Connections that fetch keeps open hold a worker for seconds.
  workerGracefulExitTimeout: 10_000,
  // Makes Jest run even one file in a worker: what a failed test leaves open must not keep Jest from its end.
  workerIdleMemoryLimit: '2GB',
  // A bound for what hangs, not a measure: the machine may be busy with other things.
  testTimeout: 240_000,
};
