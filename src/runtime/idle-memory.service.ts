import { performance, type EventLoopUtilization } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Injectable } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';

const LOOK_MS = 5_000;
/** Share of the time since the last look. */
const IDLE = 0.05;
/** Bytes. */
const SMALL = 8 * 1024 * 1024;

/** What V8 has as `gc()` with --expose-gc. */
type CollectGarbage = (options: { type: 'minor' }) => void;

/**
 * Gives back the memory of the young generation while nobody calls: it grows to 32 MiB while modules are loaded, and to 64 MiB
 * under load. V8 shrinks it by itself, but only in a collection that happens while little is allocated. An idle process
 * allocates so little that none happens for a long time. A collection of the young generation takes a few milliseconds.
 */
@Injectable()
export class IdleMemoryService {
  private before: EventLoopUtilization = performance.eventLoopUtilization();
  private collect: CollectGarbage | null = null;
  /** Bytes that are not worth a collection: those that are small, or that the last one could not give back. */
  private least = SMALL;

  @Interval(LOOK_MS)
  look(): void {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, this.before);
    this.before = now;
    const bytes = youngBytes();
    if (utilization >= IDLE || bytes <= this.least) return;
    this.collect ??= exposed();
    this.collect({ type: 'minor' });
    const left = youngBytes();
    this.least = left < bytes ? SMALL : left;
  }
}

/** Bytes of memory that the young generation takes, used or not. */
function youngBytes(): number {
  return getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')!.physical_space_size;
}

/** The flag applies to contexts that are made after it. */
function exposed(): CollectGarbage {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as CollectGarbage;
  setFlagsFromString('--no-expose-gc');
  return collect;
}
