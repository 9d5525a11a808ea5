// Loaded into the gateway with --import: once a second it writes the state of the process as a line of JSON.
import { appendFileSync, readdirSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

const delay = monitorEventLoopDelay({ resolution: 10 });
delay.enable();

setInterval(() => {
  const { rss, heapUsed, external } = process.memoryUsage();
  const handles = process.getActiveResourcesInfo();
  const sockets = handles.filter((kind) => kind === 'TCPSocketWrap').length;
  const files = readdirSync('/proc/self/fd').length;
  const loopP99Ms = delay.percentile(99) / 1e6;
  delay.reset();
  const sample = { rss, heapUsed, external, handles: handles.length, sockets, files, loopP99Ms };
  appendFileSync(process.env.BENCH_SAMPLES, `${JSON.stringify(sample)}\n`);
}, 1_000).unref();
