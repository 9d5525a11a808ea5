// A reporter that writes for scripts/test.mjs which files failed, with the first failed test of each.
const { writeFileSync } = require('node:fs');
const { relative } = require('node:path');
const { stripVTControlCharacters } = require('node:util');

/** Of an expectation inside `never(...)` (test/support/never.ts). */
const NEVER = 'This must never happen.';

module.exports = class Failures {
  constructor({ rootDir }) {
    this.rootDir = rootDir;
  }

  onRunComplete(_contexts, { testResults }) {
    const to = process.env.POSTERN_TEST_FAILURES;
    if (to === undefined) return;
    const failed = testResults.filter(
      ({ testExecError, numFailingTests }) => testExecError || numFailingTests,
    );
    writeFileSync(to, JSON.stringify(failed.map((result) => this.failure(result))));
  }

  failure({ testFilePath, testResults, failureMessage }) {
    const tests = testResults.filter(({ status }) => status === 'failed');
    const messages = tests.flatMap(({ failureMessages }) => failureMessages);
    return {
      file: relative(this.rootDir, testFilePath),
      test: tests[0] === undefined ? 'the file' : [...tests[0].ancestorTitles, tests[0].title].join(' › '),
      message: stripVTControlCharacters(messages[0] ?? failureMessage ?? '')
        .trim()
        .split('\n')[0],
      isFinal: messages.some((message) => message.includes(NEVER)),
    };
  }
};
