// The environment of `npm run test:stalls`: the event loop of the worker stands still again and again while a file runs, at
// times that the seed and the file's name give. Once the time of the run is over, what has not begun is skipped.
const { relative } = require('node:path');
// Not those that a test fakes.
const { clearTimeout, setTimeout } = require('node:timers');
const { drawn } = require('./drawn.cjs');
const ProcessEnvironment = require('./environment.cjs');

const BLOCK_MS = 3_000;
const PAUSE_MS = [1_000, 8_000];

module.exports = class StallingEnvironment extends ProcessEnvironment {
  constructor(config, context) {
    super(config, context);
    const { rootDir, testEnvironmentOptions } = config.projectConfig;
    this.options = testEnvironmentOptions;
    this.file = relative(rootDir, context.testPath);
  }

  async setup() {
    await super.setup();
    this.blockLater(1);
  }

  blockLater(count) {
    const pause = drawn(this.options.seed, `${this.file} ${count}`, ...PAUSE_MS);
    this.block = setTimeout(() => {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BLOCK_MS);
      this.blockLater(count + 1);
    }, pause).unref();
  }

  async teardown() {
    clearTimeout(this.block);
    await super.teardown();
  }

  handleTestEvent(event, state) {
    if (Date.now() > this.options.until) {
      if (event.name === 'run_describe_start') event.describeBlock.mode = 'skip';
      if (event.name === 'test_start') event.test.mode = 'skip';
    }
    super.handleTestEvent(event, state);
  }
};
