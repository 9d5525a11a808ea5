// In which order the files run. Those that mostly wait, for processes and time limits, begin early, so that none is left when
// the others have ended, and each with two others beside it, which use the processors meanwhile.
const { default: Sequencer } = require('@jest/test-sequencer');

const LONG_MS = 10_000;
/** In a fresh clone, where Jest does not know yet how long they take. */
const LONG = [
  'limits/ledger-outage.test.ts',
  'webhooks/delivery.test.ts',
  'request-log/log-writer.test.ts',
  'providers/credentials/clouds.test.ts',
  'wire/pipelining.test.ts',
  'limits/rate-processes.test.ts',
  'process/idempotency.test.ts',
  'wire/usage-formats.test.ts',
  'sinks/broken-sink.test.ts',
  'wire/timeouts.test.ts',
  'sinks/http-sink.test.ts',
  'observability/readiness.test.ts',
  'pricing/prices.test.ts',
  'sinks/clickhouse-sink.test.ts',
  'sinks/jetstream-sink.test.ts',
  'process/log-faults.test.ts',
  'process/workers.test.ts',
  'database/embedded-postgres-account.test.ts',
  'process/costs.test.ts',
  'cli/embedded.test.ts',
  'cli/terminal.test.ts',
  'request-log/journal-errors.test.ts',
  'process/embedded.test.ts',
  'limits/budget-processes.test.ts',
  'idempotency/client-disconnects.test.ts',
  'process/shutdown.test.ts',
  'wire/provider-answers.test.ts',
];

module.exports = class InTurns extends Sequencer {
  sort(tests) {
    const sorted = super.sort(tests);
    const isLong = ({ path, duration }) =>
      duration === undefined ? LONG.some((name) => path.endsWith(`/test/${name}`)) : duration > LONG_MS;
    const long = sorted.filter(isLong);
    const short = sorted.filter((test) => !isLong(test));
    return [
      ...long.flatMap((test, i) => [test, ...short.slice(2 * i, 2 * i + 2)]),
      ...short.slice(2 * long.length),
    ];
  }
};
