// In which order the files run. Jest starts with the longest, as it remembers from the run before. A fresh clone remembers
// nothing, and the largest file is not the longest: one that waits for processes and time limits, begun last, would keep
// a machine waiting that is idle otherwise.
const { default: Sequencer } = require('@jest/test-sequencer');

/** Those that wait most: for processes and time limits. */
const LONG = [
  'limits/ledger-outage.test.ts',
  'limits/ledger.test.ts',
  'process/idempotency.test.ts',
  'request-log/log-writer.test.ts',
  'wire/pipelining.test.ts',
  'idempotency/client-disconnects.test.ts',
  'providers/credentials/clouds.test.ts',
  'database/embedded-postgres-account.test.ts',
  'process/log-faults.test.ts',
  'process/workers.test.ts',
  'process/embedded.test.ts',
  'process/kill.test.ts',
  'process/backup.test.ts',
  'process/shutdown.test.ts',
  'process/first-call.test.ts',
  'cli/embedded.test.ts',
  'cli/terminal.test.ts',
  'cli/requests.test.ts',
  'database/embedded-postgres-crash.test.ts',
  'database/embedded-postgres.test.ts',
  'config/data-dir-lock.test.ts',
  'idempotency/cache.test.ts',
  'pricing/prices.test.ts',
];

module.exports = class LongestFirst extends Sequencer {
  sort(tests) {
    const sorted = super.sort(tests);
    if (sorted.some(({ duration }) => duration !== undefined)) return sorted;
    const rank = ({ path }) => LONG.findIndex((name) => path.endsWith(`/test/${name}`)) >>> 0;
    return sorted.sort((a, b) => rank(a) - rank(b));
  }
};
