import { createHash } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { describeError } from '../errors/describe-error.js';
import { SecretBoxError } from '../platform/secret-box.js';
import { CacheEntry } from './cache-entry.js';
import type { Owner } from './fair-shares.js';
import { IdempotencyRecords } from './idempotency-records.js';
import { ResponseCipher } from './response-cipher.js';
import { ResponseMemory } from './response-memory.js';
import { type StoreFailure, StoreFailures } from './store-failures.service.js';
import { StoredBytes } from './stored-bytes.service.js';
import type { StoredResponse } from './stored-response.js';

/** After an error of the database, calls go to the provider without a look-up for this long. */
const PAUSE_MS = 5_000;

/** A response of the cache. */
export interface CachedResponse {
  readonly response: StoredResponse;
  /** Seconds since it was stored. */
  readonly age: number;
}

/**
 * The response cache: responses of calls with the same request, encrypted in the table of the idempotency records. It is
 * an optimization, so no error of it fails a call.
 */
@Injectable()
export class CachedResponses {
  private readonly logger = new Logger('ResponseCache');
  private pausedUntil = -Infinity;

  constructor(
    private readonly records: IdempotencyRecords,
    private readonly cipher: ResponseCipher,
    private readonly storedBytes: StoredBytes,
    private readonly memory: ResponseMemory,
    private readonly failures: StoreFailures,
  ) {}

  /** @returns null if there is none that is young enough, or it cannot be read */
  async find(id: Buffer, ttlSeconds: number): Promise<CachedResponse | null> {
    if (performance.now() < this.pausedUntil) return null;
    try {
      const record = await this.records.readCached(id, ttlSeconds);
      if (record === null) return null;
      return { response: this.cipher.open({ id, callId: record.callId }, record.response), age: record.age };
    } catch (error) {
      // Encrypted with a master key that was replaced: the call stores its response again.
      if (error instanceof SecretBoxError) return null;
      this.pause('read', error);
      return null;
    }
  }

  /**
   * Copies the response of a call and stores it.
   *
   * @param isNamed is a request header, by its lower-case name, part of the ID?
   */
  entry(
    id: Buffer,
    owner: Owner,
    callId: string,
    ttlSeconds: number,
    isNamed: (header: string) => boolean,
  ): CacheEntry {
    const failed = (reason: StoreFailure) => this.failures.add('cache', reason, owner);
    return new CacheEntry(owner, isNamed, {
      memory: this.memory.copies,
      hasStorage: (bytes) => this.storedBytes.hasRoom(owner, bytes),
      store: async (response) => {
        try {
          const sealed = this.cipher.seal({ id, callId }, response);
          if (!this.storedBytes.take(owner, sealed.length)) failed('storage');
          else await this.records.storeCached({ id, callId }, owner.keyId, sealed, ttlSeconds);
        } catch (error) {
          failed('error');
          this.pause('stored', error);
        }
      },
      failed,
    });
  }

  private pause(what: string, error: unknown): void {
    this.pausedUntil = performance.now() + PAUSE_MS;
    this.logger.warn(`A response could not be ${what}: ${describeError(error)}`);
  }
}

/** The ID of a cached response. Each part is written with its length, so that no two lists of parts are the same. */
export function cacheId(parts: readonly (string | Buffer)[]): Buffer {
  const hash = createHash('sha256').update('response cache 2');
  for (const part of parts) {
    const bytes = typeof part === 'string' ? Buffer.from(part) : part;
    hash.update(`\0${bytes.length}\0`).update(bytes);
  }
  return hash.digest();
}
