// A process whose young generation has grown. In a worker of Jest, what other tests left behind allocates, and V8 gives
// nothing back while much is allocated.
import { constants, type NodeGCPerformanceDetail, PerformanceObserver } from 'node:perf_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import { getHeapSpaceStatistics } from 'node:v8';
import 'reflect-metadata';
import { IdleMemoryService } from '../../src/runtime/idle-memory.service.js';
import { timePasses } from '../support/eventually.js';

const MIB = 2 ** 20;

/** What the process reports: the MiB of its young generation, and how many collections of it somebody asked for. */
export interface Memory {
  youngMib: number;
  forced: number;
}

/** V8 makes others. */
let forced = 0;
const observer = new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    const { kind, flags } = (entry as unknown as { detail: NodeGCPerformanceDetail }).detail;
    const isForced = flags === constants.NODE_PERFORMANCE_GC_FLAGS_FORCED;
    if (isForced && kind === constants.NODE_PERFORMANCE_GC_MINOR) forced++;
  }
});
observer.observe({ entryTypes: ['gc'] });

const youngMib = () =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')!.physical_space_size / MIB;
const report = () => process.send!({ youngMib: youngMib(), forced } satisfies Memory);

const memory = new IdleMemoryService();
// It grows when much survives.
let kept: object = {};
while (youngMib() <= 12) for (let i = 0; i < 1_000; i++) kept = { kept };
memory.look();
await turn();
report();
kept = {};
// Until its parent ends it.
while (process.connected) {
  // It does not try again to give back what it could not: V8 gives nothing back as long as it has seen many allocations lately.
  const again = new IdleMemoryService();
  await timePasses(1_000, 'only an idle process gives memory back');
  again.look();
  await turn();
  report();
}
