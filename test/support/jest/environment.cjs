// The process itself as Jest's environment of a test file. What a file leaves changed in it is put back after it.
const { ModuleMocker } = require('jest-mock');
const { ModernFakeTimers } = require('@jest/fake-timers');

/** jest-circus hands its event handlers from file to file here, for a global that ends with the file. */
const EVENT_HANDLERS = Symbol.for('EVENT_HANDLERS');

// Jest may be ended without a word to its workers. (To listen for 'disconnect' would keep the worker from its own end.)
const jest = process.ppid;
setInterval(() => process.ppid === jest || process.exit(1), 1_000).unref();

// Jest begins a file anew, without a word, in the place of a worker that ends with any code but that of SIGKILL.
if (process.connected) process.on('exit', (code) => code !== 0 && (process.exitCode = 137));

module.exports = class ProcessEnvironment {
  global = globalThis;
  fakeTimers = null;
  isSetUp = true;

  constructor({ projectConfig }) {
    this.moduleMocker = new ModuleMocker(globalThis);
    this.fakeTimersModern = new ModernFakeTimers({ config: projectConfig, global: globalThis });
    this.patience = projectConfig.testEnvironmentOptions.patience;
    const { env, exitCode } = process;
    const cwd = process.cwd();
    const exit = process.exit;
    const variables = { ...env };
    const consoleOfJest = globalThis.console;
    this.restore = () => {
      process.env = env;
      for (const name of Object.keys(env)) if (!(name in variables)) delete env[name];
      Object.assign(env, variables);
      if (process.cwd() !== cwd) process.chdir(cwd);
      process.exit = exit;
      process.exitCode = exitCode;
      globalThis.console = consoleOfJest;
    };
  }

  // Jest asks whether there is one; scripts run without.
  getVmContext() {
    return null;
  }

  async setup() {
    // src/platform/patience.ts. The catalog is loaded by a thread that gets its turn late on a busy machine.
    globalThis[Symbol.for('postern.patience')] = { '*': this.patience, 'prices of a batch': 240 };
    globalThis.testFailed = false;
  }

  async teardown() {
    // What this file has left running (after-file.ts).
    try {
      for (const run of globalThis.runAfterFile ?? []) await run();
    } finally {
      this.fakeTimersModern.dispose();
      // Else every event of later files would reach this one too.
      delete globalThis[EVENT_HANDLERS];
      this.restore();
    }
  }

  handleTestEvent(event, state) {
    if (event.name !== 'test_fn_failure' && event.name !== 'hook_failure') return;
    // Tells the file, so that its database can be kept for a look.
    globalThis.testFailed = true;
    if (event.hook?.type === 'beforeAll') this.isSetUp = false;
    // What was not started cannot be stopped: the file has failed already, and this would hide why.
    if (event.hook?.type === 'afterAll' && !this.isSetUp) state.unhandledErrors.pop();
  }
};
