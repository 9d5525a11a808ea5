// Jest's runtime, without its vm and its modules: a test file is the ES module that scripts/compile.mjs made of it, loaded
// by Node itself. So `instanceof`, the module format and the speed are those of production, and the files that one worker
// runs share the modules of src/. What needs Jest's own modules is not there: jest.mock(), jest.resetModules().
const asyncHooks = require('node:async_hooks');
const { syncBuiltinESMExports } = require('node:module');
const { join, relative } = require('node:path');
const { pathToFileURL } = require('node:url');

const TEST_TIMEOUT = Symbol.for('TEST_TIMEOUT_SYMBOL');

/**
 * What jest-circus uses of AsyncLocalStorage, for tests that run one after the other. Before Node 24, the real one watches
 * every promise from its first use on. Each file would add another, and nothing is slower than a promise watched by dozens.
 */
class SequentialStorage {
  getStore() {
    return this.store;
  }

  async run(store, task) {
    const outer = this.store;
    this.store = store;
    try {
      return await task();
    } finally {
      this.store = outer;
    }
  }
}

module.exports = class NodeRuntime {
  constructor(config, environment) {
    this.rootDir = config.rootDir;
    this.mocker = environment.moduleMocker;
    this.timers = environment.fakeTimersModern;
  }

  // --- loading

  /** Jest's own: a new one for each file, or the tests of the file before would run again. */
  requireInternalModule(path) {
    delete require.cache[path];
    // A getter without a setter from Node 24 on.
    const own = Object.getOwnPropertyDescriptor(asyncHooks, 'AsyncLocalStorage');
    Object.defineProperty(asyncHooks, 'AsyncLocalStorage', { value: SequentialStorage, configurable: true });
    try {
      return require(path);
    } finally {
      Object.defineProperty(asyncHooks, 'AsyncLocalStorage', own);
    }
  }

  requireModule(path) {
    return require(path);
  }

  unstable_shouldLoadAsEsm(path) {
    return path.endsWith('.ts');
  }

  unstable_importModule(path) {
    const built = join(this.rootDir, '.test-build', relative(this.rootDir, path)).replace(/ts$/, 'js');
    return import(pathToFileURL(built).href);
  }

  /** None of its own: stacks are mapped by the files beside the compiled ones. */
  getSourceMaps() {
    return null;
  }

  // --- the global `jest`

  setGlobalsForRuntime() {
    const { mocker, timers } = this;
    const chained =
      (act) =>
      (...args) => {
        act(...args);
        return jest;
      };
    const jest = {
      fn: mocker.fn.bind(mocker),
      isMockFunction: mocker.isMockFunction.bind(mocker),
      mocked: (source) => source,
      replaceProperty: mocker.replaceProperty.bind(mocker),
      spyOn: (...args) => {
        const spy = mocker.spyOn(...args);
        const { mockRestore } = spy;
        spy.mockRestore = () => {
          mockRestore();
          syncBuiltinESMExports();
        };
        // `import { openSync } from 'node:fs'` follows what is done to the module's exports from here on only.
        syncBuiltinESMExports();
        return spy;
      },
      clearAllMocks: chained(() => this.clearAllMocks()),
      resetAllMocks: chained(() => this.resetAllMocks()),
      restoreAllMocks: chained(() => this.restoreAllMocks()),
      // Read by jest-circus, under this name, when the tests of the file begin.
      setTimeout: chained((ms) => (globalThis[TEST_TIMEOUT] = ms)),
      useFakeTimers: chained((config) => timers.useFakeTimers(config)),
      useRealTimers: chained(() => timers.useRealTimers()),
      setSystemTime: (now) => timers.setSystemTime(now),
      advanceTimersByTime: (ms) => timers.advanceTimersByTime(ms),
      advanceTimersByTimeAsync: (ms) => timers.advanceTimersByTimeAsync(ms),
      runAllTimers: () => timers.runAllTimers(),
      getTimerCount: () => timers.getTimerCount(),
    };
    globalThis.jest = jest;
  }

  clearAllMocks() {
    this.mocker.clearAllMocks();
  }

  resetAllMocks() {
    this.mocker.resetAllMocks();
  }

  restoreAllMocks() {
    this.mocker.restoreAllMocks();
    syncBuiltinESMExports();
  }

  // --- what Jest calls and what has nothing to do here

  teardown() {
    this.restoreAllMocks();
    delete globalThis[TEST_TIMEOUT];
  }

  enterTestCode() {}
  leaveTestCode() {}
  resetModules() {}
  getAllCoverageInfoCopy() {}
  getAllV8CoverageInfoCopy() {}
  collectV8Coverage() {}
  stopCollectingV8Coverage() {}
};
