import { type BeforeApplicationShutdown, Injectable } from '@nestjs/common';
import { CLOSE_TIMEOUT_MS, withTimeout } from '../platform/with-timeout.js';
import {
  type FoundCached,
  IdempotencyRecords,
  type NewCached,
  type WantedCached,
} from './idempotency-records.js';

/** Looked up in one statement. */
const MAX_LOOK_UPS = 100;
/** Stored in one statement; one that is larger has its own. */
const MAX_STORED = 100;
const MAX_STORED_BYTES = 4 * 1024 * 1024;
/** A response waits at most this long for others to be stored with. */
const STORE_AFTER_MS = 50;

/** A promise that is settled from outside. */
class Result<T> {
  resolve!: (value: T) => void;
  reject!: (error: unknown) => void;
  readonly promise = new Promise<T>((resolve, reject) => {
    this.resolve = resolve;
    this.reject = reject;
  });
}

interface Waiting {
  readonly wanted: WantedCached;
  readonly result: Result<FoundCached | null>;
}

interface Storing {
  readonly entry: NewCached;
  readonly result: Result<void>;
}

/**
 * Looks up and stores cached responses, many in one statement: a look-up at once, or with all that come while another is
 * under way; what is to be stored a moment later, because no call waits for it.
 */
@Injectable()
export class CacheBatches implements BeforeApplicationShutdown {
  /** By ID and age: calls with the same request wait for the same look-up. */
  private wanted = new Map<string, Waiting>();
  private isLookingUp = false;
  private storing: Storing[] = [];
  private bytes = 0;
  private timer: NodeJS.Timeout | null = null;
  private inFlight: Promise<void> | null = null;

  constructor(private readonly records: IdempotencyRecords) {}

  /** @throws Error of the database. All that wait then get it: a further look-up could only take as long again */
  find(wanted: WantedCached): Promise<FoundCached | null> {
    const name = `${wanted.id.toString('latin1')}${wanted.ttlSeconds}`;
    let waiting = this.wanted.get(name);
    if (waiting === undefined) {
      waiting = { wanted, result: new Result() };
      this.wanted.set(name, waiting);
    }
    if (!this.isLookingUp) void this.lookUp();
    return waiting.result.promise;
  }

  private async lookUp(): Promise<void> {
    this.isLookingUp = true;
    while (this.wanted.size > 0) {
      const batch = this.takeWanted(MAX_LOOK_UPS);
      try {
        const found = await this.records.findCached(batch.map(({ wanted }) => wanted));
        batch.forEach(({ result }, i) => result.resolve(found[i]!));
      } catch (error) {
        for (const { result } of [...batch, ...this.takeWanted(Infinity)]) result.reject(error);
      }
    }
    this.isLookingUp = false;
  }

  private takeWanted(most: number): Waiting[] {
    const taken: Waiting[] = [];
    for (const [name, waiting] of this.wanted) {
      if (taken.length >= most) break;
      taken.push(waiting);
      this.wanted.delete(name);
    }
    return taken;
  }

  /** Resolves when it is stored. @throws Error of the database */
  store(entry: NewCached): Promise<void> {
    const result = new Result<void>();
    this.storing.push({ entry, result });
    this.bytes += entry.response.length;
    if (this.storing.length >= MAX_STORED || this.bytes >= MAX_STORED_BYTES) this.flush();
    else this.timer ??= setTimeout(() => this.flush(), STORE_AFTER_MS);
    return result.promise;
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.flush();
    if (this.inFlight !== null) await withTimeout(CLOSE_TIMEOUT_MS, this.inFlight);
  }

  private flush(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    if (this.storing.length > 0) this.inFlight ??= this.storeAll();
  }

  private async storeAll(): Promise<void> {
    while (this.storing.length > 0) {
      const batch = this.takeStoring();
      try {
        await this.records.storeCached(lastOfEach(batch.map(({ entry }) => entry)));
        for (const { result } of batch) result.resolve();
      } catch (error) {
        for (const { result } of batch) result.reject(error);
      }
    }
    // In the same tick as the check: what comes later starts a new run.
    this.inFlight = null;
  }

  private takeStoring(): Storing[] {
    let count = 0;
    let bytes = 0;
    for (const { entry } of this.storing) {
      if (count === MAX_STORED || (count > 0 && bytes + entry.response.length > MAX_STORED_BYTES)) break;
      bytes += entry.response.length;
      count++;
    }
    this.bytes -= bytes;
    return this.storing.splice(0, count);
  }
}

/** A statement must not write a record twice (SQLSTATE 21000): the last response counts. Sorted by ID. */
function lastOfEach(entries: readonly NewCached[]): NewCached[] {
  const byId = new Map<string, NewCached>();
  for (const entry of entries) byId.set(entry.id.toString('latin1'), entry);
  return [...byId.values()].sort((a, b) => a.id.compare(b.id));
}
