// A reporter that writes for scripts/test.mjs which files failed, with the first failed test of each.
const { writeFileSync } = require('node:fs');
const { relative } = require('node:path');
const { stripVTControlCharacters } = require('node:util');

/** Of an expectation inside `never(...)` (test/support/never.ts). */
const NEVER = 'This must never happen.';

const nameOf = ({ ancestorTitles, title }) => [...ancestorTitles, title].join(' › ');

module.exports = class Failures {
  /** Names of tests by the paths of their files: a worker that ends takes the other results of its file with it. */
  final = new Map();

  constructor({ rootDir }) {
    this.rootDir = rootDir;
  }

  onTestCaseResult({ path }, result) {
    if (result.failureMessages.some((message) => message.includes(NEVER)))
      this.final.set(path, nameOf(result));
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
      test: this.final.get(testFilePath) ?? (tests[0] === undefined ? 'the file' : nameOf(tests[0])),
      message: stripVTControlCharacters(messages[0] ?? failureMessage ?? '')
        .trim()
        .split('\n')[0],
      isFinal: this.final.has(testFilePath),
    };
  }
};
