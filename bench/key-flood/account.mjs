// Loaded into the gateway before anything else (node --import): what does the gateway itself do meanwhile? Counts the
// look-ups of keys it sends to Postgres, its processor time, how long its main thread was ready and had to wait for a core
// that somebody else (Postgres, the flood) was using, and how long its event loop was blocked at most. Served by HTTP at the
// address in ACCOUNT_FILE.
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import pg from 'pg';

let lookUps = 0;
const { query } = pg.Client.prototype;
pg.Client.prototype.query = function (...args) {
  const text = typeof args[0] === 'string' ? args[0] : args[0]?.text;
  if (text?.includes('FROM gateway_key_secret s')) lookUps++;
  return query.apply(this, args);
};

/** Linux, Documentation/scheduler/sched-stats: the second figure is ns on a run queue. */
function waitedMicros() {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[1]) / 1_000;
  } catch {
    return NaN;
  }
}

const delay = monitorEventLoopDelay({ resolution: 5 });
delay.enable();
const server = createServer((_req, res) => {
  const { user, system } = process.cpuUsage();
  const told = {
    at: performance.now(),
    lookUps,
    cpuMicros: user + system,
    waitedMicros: waitedMicros(),
    longestBlockMs: delay.max / 1e6,
  };
  delay.reset();
  res.end(JSON.stringify(told));
});
server.listen(0, '127.0.0.1', () =>
  writeFileSync(process.env.ACCOUNT_FILE, `http://127.0.0.1:${server.address().port}/`),
);
server.unref();
