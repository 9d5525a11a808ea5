// `npm run test:sinks`: sinks with the real servers of ClickHouse (its engine, chdb) and NATS, which it installs with pip and
// `go install`. `npm test` needs neither: it has a small receiver of its own.
import base from './jest.config.js';

export default { ...base, testMatch: ['**/test/sinks/real/*.real.ts'], maxWorkers: 1 };
