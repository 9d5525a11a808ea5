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
  'packaging/package.tools.ts',
  'process/modules.processes.ts',
  'process/jobs.processes.ts',
  'database/functions.processes.ts',
  'refusals/refusals.test.ts',
  'cli/migration.processes.ts',
  'consumers/log-consumers.test.ts',
  'process/finish.processes.ts',
  'process/log-faults.processes.ts',
  'admin/every-route.test.ts',
  'request-log/log-writer.test.ts',
  'webhooks/delivery.test.ts',
  'cli/providers.test.ts',
  'apply/export.test.ts',
  'limits/ledger-outage.test.ts',
  'usage/rollup.test.ts',
  'providers/credentials/clouds.test.ts',
  'limits/budget.processes.ts',
  'cli/keys.test.ts',
  'process/postgres-unavailable.processes.ts',
  'limits/shared-limits.test.ts',
  'jobs/faults.test.ts',
  'request-log/journal-recovery.test.ts',
  'providers/keyless/replicas.processes.ts',
  'wire/pipelining.test.ts',
  'idempotency/memory.test.ts',
  'cli/requests.processes.ts',
  'process/bundle.processes.ts',
  'process/idempotency.processes.ts',
  'observability/readiness.test.ts',
  'process/costs.processes.ts',
  'bodies/request-reader.test.ts',
  'process/kill.processes.ts',
  'process/faults.processes.ts',
  'database/embedded-postgres-account.processes.ts',
  'process/embedded.processes.ts',
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
