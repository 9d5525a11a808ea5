import { constants, type NodeGCPerformanceDetail, PerformanceObserver } from 'node:perf_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import { getHeapSpaceStatistics } from 'node:v8';
import { IdleMemoryService } from '../../src/runtime/idle-memory.service.js';
import { eventually, timePasses } from '../support/eventually.js';

const MIB = 2 ** 20;

function youngMib(): number {
  const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')!;
  return young.physical_space_size / MIB;
}

/** Collections of the young generation that somebody asked for: V8 makes others. */
let forced = 0;
const observer = new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    const { kind, flags } = (entry as unknown as { detail: NodeGCPerformanceDetail }).detail;
    const isForced = flags === constants.NODE_PERFORMANCE_GC_FLAGS_FORCED;
    if (isForced && kind === constants.NODE_PERFORMANCE_GC_MINOR) forced++;
  }
});
beforeAll(() => observer.observe({ entryTypes: ['gc'] }));
afterAll(() => observer.disconnect());

it('gives the memory of the young generation back while nothing happens, and only then', async () => {
  const memory = new IdleMemoryService();
  // It grows when much survives.
  let kept: object = {};
  while (youngMib() <= 12) for (let i = 0; i < 1_000; i++) kept = { kept };
  memory.look();
  await turn();
  expect([forced, youngMib() > 12]).toEqual([0, true]);
  kept = {};
  await eventually(async () => {
    // It does not try again to give back what it could not: V8 gives nothing back as long as it has seen many allocations lately.
    const again = new IdleMemoryService();
    await timePasses(1_000, 'only an idle process gives memory back');
    again.look();
    await turn();
    return forced > 0 && youngMib() < 8;
  });
});
