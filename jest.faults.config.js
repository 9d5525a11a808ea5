// `npm run test:faults`: minutes of load at its full size, of processes killed, databases broken and disks filled.
// `npm test` runs short versions of the same.
import base from './jest.config.js';

export default {
  ...base,
  // As in production (src/platform/patience.ts).
  testEnvironmentOptions: { patience: 1 },
  testMatch: [
    '**/*.faults.ts',
    '**/config/data-dir-lock.test.ts',
    '**/database/embedded-postgres-crash.test.ts',
    '**/database/upgrade.test.ts',
    '**/idempotency/duplicates.test.ts',
    '**/observability/closed-labels.test.ts',
    '**/process/idempotency.test.ts',
    '**/limits/rate-processes.test.ts',
    '**/limits/shared-limits.test.ts',
    '**/process/log-faults.test.ts',
    '**/request-log/journal-recovery.test.ts',
    '**/request-log/log-row.test.ts',
    '**/wire/aborts.test.ts',
    '**/wire/flat-memory.test.ts',
  ],
  maxWorkers: 1,
};
