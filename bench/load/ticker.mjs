// A finer clock than Node's timers, which count whole milliseconds: a thread that sleeps on a futex and then calls.
import { Worker } from 'node:worker_threads';

const THREAD = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { everyMs, stop } = workerData;
  const flag = new Int32Array(stop);
  for (let next = performance.now(); Atomics.load(flag, 0) === 0;) {
    next = Math.max(next + everyMs, performance.now() - 5);
    const wait = next - performance.now();
    if (wait > 0) Atomics.wait(flag, 0, 0, wait);
    parentPort.postMessage(0);
  }`;

/** Calls `tick` about every `everyMs` (fractions count) until the returned function is called. */
export function startTicker(everyMs, tick) {
  const stop = new SharedArrayBuffer(4);
  const worker = new Worker(THREAD, { eval: true, workerData: { everyMs, stop } });
  worker.on('message', tick);
  return async () => {
    Atomics.store(new Int32Array(stop), 0, 1);
    Atomics.notify(new Int32Array(stop), 0);
    await worker.terminate();
  };
}
