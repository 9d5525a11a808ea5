import { setImmediate as afterThisTick } from 'node:timers/promises';
import { type BeforeApplicationShutdown, Injectable } from '@nestjs/common';
import { CLOSE_TIMEOUT, withTimeout } from '../platform/patience.js';
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

/** What one statement looks up. */
class LookUps {
  readonly wanted: WantedCached[] = [];
  /** In the order of `wanted`. */
  found!: Promise<(FoundCached | null)[]>;
  private readonly places = new Map<string, number>();

  get isFull(): boolean {
    return this.wanted.length === MAX_LOOK_UPS;
  }

  /** @returns its place. Calls with the same request share one */
  add(wanted: WantedCached): number {
    const name = `${wanted.id.toString('latin1')}${wanted.ttlSeconds}`;
    let place = this.places.get(name);
    if (place === undefined) {
      place = this.wanted.push(wanted) - 1;
      this.places.set(name, place);
    }
    return place;
  }
}

/** A response that is to be stored. */
export interface Unsealed extends Omit<NewCached, 'response'> {
  /** Of its body. */
  readonly bytes: number;
  /** Encrypts it. @returns null if it is not to be stored after all. It never throws. */
  seal(): Buffer | null;
}

/** What one statement stores. */
class Batch {
  readonly entries: Unsealed[] = [];
  private bytes = 0;
  resolve!: () => void;
  reject!: (error: unknown) => void;
  readonly stored = new Promise<void>((resolve, reject) => {
    this.resolve = resolve;
    this.reject = reject;
  });

  get isFull(): boolean {
    return this.entries.length === MAX_STORED || this.bytes >= MAX_STORED_BYTES;
  }

  /** @returns false if it would be too large with this one */
  add(entry: Unsealed): boolean {
    if (this.entries.length > 0 && this.bytes + entry.bytes > MAX_STORED_BYTES) return false;
    this.entries.push(entry);
    this.bytes += entry.bytes;
    return true;
  }
}

/**
 * Looks up and stores cached responses, many in one statement: a look-up with all of the same event-loop tick, or that
 * come while another is under way; what is to be stored a moment later, because no call waits for it.
 */
@Injectable()
export class CacheBatches implements BeforeApplicationShutdown {
  /** Those that wait for their statement. */
  private lookUps: LookUps | null = null;
  /** The result of the last statement that was begun or waits; null once it has ended. */
  private lastFound: LookUps['found'] | null = null;
  /** Takes more responses, also once its timer has fired, until its statement begins. */
  private batch: Batch | null = null;
  private timer: NodeJS.Timeout | null = null;
  /** These take no more. */
  private readonly full: Batch[] = [];
  private storing: Promise<void> | null = null;

  constructor(private readonly records: IdempotencyRecords) {}

  /** @throws Error of the database. All that wait then get it: a further look-up could only take as long again */
  async find(wanted: WantedCached): Promise<FoundCached | null> {
    const lookUps = this.lookUps === null || this.lookUps.isFull ? this.begin() : this.lookUps;
    const place = lookUps.add(wanted);
    return (await lookUps.found)[place]!;
  }

  private begin(): LookUps {
    const lookUps = new LookUps();
    this.lookUps = lookUps;
    // By the end of the tick, all sockets that can be read were read, and their calls have come.
    lookUps.found = this.lookUp(lookUps, this.lastFound ?? afterThisTick());
    this.lastFound = lookUps.found;
    return lookUps;
  }

  private async lookUp(lookUps: LookUps, previous: Promise<unknown>): LookUps['found'] {
    try {
      await previous;
      this.close(lookUps);
      return await this.records.findCached(lookUps.wanted);
    } finally {
      this.close(lookUps);
      if (this.lastFound === lookUps.found) this.lastFound = null;
    }
  }

  private close(lookUps: LookUps): void {
    if (this.lookUps === lookUps) this.lookUps = null;
  }

  /** Resolves when it is stored, or is not to be stored. @throws Error of the database */
  store(entry: Unsealed): Promise<void> {
    if (this.batch?.add(entry) !== true) {
      this.endBatch();
      this.batch = new Batch();
      this.batch.add(entry);
      this.timer = setTimeout(this.onTimer, STORE_AFTER_MS);
    }
    const { stored, isFull } = this.batch;
    if (isFull) this.endBatch();
    return stored;
  }

  async beforeApplicationShutdown(): Promise<void> {
    // Responses that could not be stored by then are not in the cache.
    await withTimeout(CLOSE_TIMEOUT.ms, this.storeRest());
  }

  private async storeRest(): Promise<void> {
    this.endBatch();
    while (this.storing !== null) {
      await this.storing;
      this.endBatch();
    }
  }

  private endBatch(): void {
    if (this.batch === null) return;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    this.full.push(this.batch);
    this.batch = null;
    this.storing ??= this.storeAll();
  }

  private readonly onTimer = (): void => {
    this.timer = null;
    this.storing ??= this.storeAll();
  };

  private async storeAll(): Promise<void> {
    // The responses of this tick are written first: to encrypt a hundred takes a millisecond.
    await afterThisTick();
    for (let batch = this.nextBatch(); batch !== null; batch = this.nextBatch()) {
      try {
        const entries = lastOfEach(batch.entries).flatMap(sealed);
        if (entries.length > 0) await this.records.storeCached(entries);
        batch.resolve();
      } catch (error) {
        batch.reject(error);
      }
    }
    // In the same tick as the check: what comes later starts a new run.
    this.storing = null;
  }

  private nextBatch(): Batch | null {
    const full = this.full.shift();
    if (full !== undefined) return full;
    // What has come during a statement waits for its own timer, so that the next one is not for the first few of it.
    if (this.timer !== null) return null;
    const { batch } = this;
    this.batch = null;
    return batch;
  }
}

/** A statement must not write a record twice (SQLSTATE 21000): the last response counts. Sorted by ID. */
function lastOfEach(entries: readonly Unsealed[]): Unsealed[] {
  const byId = new Map<string, Unsealed>();
  for (const entry of entries) byId.set(entry.id.toString('latin1'), entry);
  return [...byId.values()].sort((a, b) => a.id.compare(b.id));
}

function sealed(entry: Unsealed): NewCached[] {
  const response = entry.seal();
  return response === null ? [] : [{ ...entry, response }];
}
