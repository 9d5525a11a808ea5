// `npm run test:sinks`: sinks with the real servers of ClickHouse (its engine, chdb) and NATS, which it installs with pip and
// `go install`. `npm test` needs neither: it has small fakes of its own. It prints rates, processor time and lag.
//
// SINK_ROWS     rows of the proof (1000000), and of the rate up to 400000
// SINK_KILLS    processes killed while they are sent (20)
// SINK_ONLY     `warehouse` (ClickHouse) or `stream` (JetStream): the other sink is paused in the proof
// SINK_MINUTES  the proof inserts rows for as long at most (20)
// SINK_RATE     least rows/s of one leader, with a lag of 10 s at most at 3,000 rows/s (0: nothing timed is checked)
import base from './jest.config.js';

// Other tests have their files in memory, which is too small for these.
process.env.POSTERN_TEST_FULL ??= '1';

export default { ...base, testMatch: ['**/test/sinks/real/*.real.ts'], maxWorkers: 1 };
