// In which order the files run. Those that mostly wait, for processes and time limits, begin early, so that none is left when
// the others have ended, and each with two others beside it, which use the processors meanwhile.
const { default: Sequencer } = require('@jest/test-sequencer');

const LONG_MS = 10_000;
/** In a fresh clone, where Jest does not know yet how long they take. */
const LONG = [
  'console/every-page.browser.ts',
  'console/managing.browser.ts',
  'console/every-role.browser.ts',
  'console/flows.browser.ts',
  'console/console.browser.ts',
  'packaging/package.test.ts',
  'process/modules.test.ts',
  'process/jobs.test.ts',
  'database/functions.test.ts',
  'refusals/refusals.test.ts',
  'cli/migration.test.ts',
  'consumers/log-consumers.test.ts',
  'process/finish.test.ts',
  'process/log-faults.test.ts',
  'admin/every-route.test.ts',
  'request-log/log-writer.test.ts',
  'webhooks/delivery.test.ts',
  'cli/providers.test.ts',
  'apply/export.test.ts',
  'limits/ledger-outage.test.ts',
  'usage/rollup.test.ts',
  'providers/credentials/clouds.test.ts',
  'limits/budget-processes.test.ts',
  'cli/keys.test.ts',
  'process/postgres-unavailable.test.ts',
  'limits/shared-limits.test.ts',
  'jobs/faults.test.ts',
  'request-log/journal-recovery.test.ts',
  'providers/keyless/replicas.test.ts',
  'wire/pipelining.test.ts',
  'idempotency/memory.test.ts',
  'cli/requests.test.ts',
  'process/bundle.test.ts',
  'process/idempotency.test.ts',
  'observability/readiness.test.ts',
  'process/costs.test.ts',
  'bodies/request-reader.test.ts',
  'process/kill.test.ts',
  'process/faults.test.ts',
  'database/embedded-postgres-account.test.ts',
  'process/embedded.test.ts',
  'admin/roles.test.ts',
  'sinks/http-sink.test.ts',
  'bodies/usage/usage-encodings.test.ts',
];

module.exports = class InTurns extends Sequencer {
  sort(tests) {
    const sorted = super.sort(tests);
    const isLong = ({ path, duration }) =>
      duration === undefined ? LONG.some((name) => path.endsWith(`/test/${name}`)) : duration > LONG_MS;
    const long = sorted.filter(isLong);
    const short = sorted.filter((test) => !isLong(test));
    // A browser keeps the processors busy by itself.
    if (tests.some(({ path }) => path.endsWith('.browser.ts'))) return [...long, ...short];
    return [
      ...long.flatMap((test, i) => [test, ...short.slice(2 * i, 2 * i + 2)]),
      ...short.slice(2 * long.length),
    ];
  }
};
