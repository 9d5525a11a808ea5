import { createHash, hash } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { describeError } from '../errors/describe-error.js';
import { SecretBoxError } from '../platform/secret-box.js';
import { CacheEntry } from './cache-entry.js';
import { CacheBatches } from './cache-batches.js';
import type { Owner } from './fair-shares.js';
import { IdempotencyRecords } from './idempotency-records.js';
import { ResponseCipher } from './response-cipher.js';
import { ResponseMemory } from './response-memory.js';
import { type StoreFailure, StoreFailures } from './store-failures.service.js';
import { StoredBytes } from './stored-bytes.service.js';
import type { StoredResponse } from './stored-response.js';

/** After an error of the database, calls go to the provider without a look-up for this long. */
const PAUSE_MS = 5_000;

/** Memory of this process for responses that were sent from the cache in the last minute, and no longer: they are decrypted. */
const RECENT_BYTES = 32 * 1024 * 1024;
const RECENT_MS = 60_000;
const MAX_RECENT_BYTES = 1024 * 1024;
/** Roughly what one takes besides its bytes. */
const ENTRY_BYTES = 1_024;

const MAX_HASHED_AT_ONCE = 65_536;

/** A decrypted response, and the call that stored it. */
interface Recent {
  readonly callId: string;
  readonly response: StoredResponse;
  /** Of head and body. */
  readonly bytes: number;
}

/** A response of the cache. */
export interface CachedResponse {
  readonly response: StoredResponse;
  /** Seconds since it was stored. */
  readonly age: number;
}

/**
 * The response cache: responses of calls with the same request, encrypted in the table of the idempotency records. It is
 * an optimization, so no error of it fails a call.
 *
 * Postgres is asked for each call, so that a response that was replaced, has expired or was deleted is never sent. What was
 * sent lately is in memory: Postgres then confirms it, and it is neither transferred nor decrypted again.
 */
@Injectable()
export class CachedResponses {
  private readonly logger = new Logger('ResponseCache');
  private pausedUntil = -Infinity;
  /** By ID. */
  private readonly recent = new LRUCache<string, Recent>({
    maxSize: RECENT_BYTES,
    maxEntrySize: MAX_RECENT_BYTES,
    sizeCalculation: ({ bytes }) => bytes + ENTRY_BYTES,
    ttl: RECENT_MS,
    ttlAutopurge: true,
    updateAgeOnGet: true,
  });

  constructor(
    private readonly records: IdempotencyRecords,
    private readonly batches: CacheBatches,
    private readonly cipher: ResponseCipher,
    private readonly storedBytes: StoredBytes,
    private readonly memory: ResponseMemory,
    private readonly failures: StoreFailures,
  ) {}

  /** @returns null if there is none that is young enough, or it cannot be read */
  async find(id: Buffer, ttlSeconds: number): Promise<CachedResponse | null> {
    if (performance.now() < this.pausedUntil) return null;
    const name = id.toString('latin1');
    try {
      const known = this.recent.get(name)?.callId ?? null;
      const found = await this.batches.find({ id, ttlSeconds, known });
      if (found === null) return null;
      const { callId, age } = found;
      const recent = this.recent.get(name);
      if (recent?.callId === callId) return { response: recent.response, age };
      const sealed = found.response ?? (await this.records.readCached({ id, callId }));
      if (sealed === null) return null;
      const response = this.cipher.open({ id, callId }, sealed);
      if (sealed.length < MAX_RECENT_BYTES) {
        response.body = alone(response.body);
        this.recent.set(name, { callId, response, bytes: sealed.length });
      }
      return { response, age };
    } catch (error) {
      // Encrypted with a master key that was replaced: the call stores its response again.
      if (error instanceof SecretBoxError) return null;
      this.pause('read', error);
      return null;
    }
  }

  /** Forgets what is in memory, as a new process does. */
  forgetRecent(): void {
    this.recent.clear();
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
    const failedWith = (error: unknown) => {
      failed('error');
      this.pause('stored', error);
    };
    return new CacheEntry(owner, isNamed, {
      memory: this.memory.copies,
      hasStorage: (bytes) => this.storedBytes.hasRoom(owner, bytes),
      store: (response) => {
        const seal = (): Buffer | null => {
          try {
            const sealed = this.cipher.seal({ id, callId }, response);
            if (this.storedBytes.take(owner, sealed.length)) return sealed;
            failed('storage');
          } catch (error) {
            // Encryption copies the response, and memory may be short.
            failedWith(error);
          }
          return null;
        };
        const bytes = response.body.length;
        return this.batches
          .store({ id, callId, keyId: owner.keyId, ttlSeconds, bytes, seal })
          .catch(failedWith);
      },
      failed,
    });
  }

  private pause(what: string, error: unknown): void {
    const now = performance.now();
    const isPaused = now < this.pausedUntil;
    this.pausedUntil = now + PAUSE_MS;
    // Many calls get the error of one statement.
    if (isPaused) return;
    this.logger.warn(`A response could not be ${what}: ${describeError(error)}`);
  }
}

/** A small part of a buffer keeps all of it in memory, which is at least a piece of Node's pool of 8 KiB. */
function alone(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  copy.set(bytes);
  return copy;
}

/** The ID of a cached response. Each part is written with its length, so that no two lists of parts are the same. */
export function cacheId(parts: readonly (string | Buffer)[]): Buffer {
  const pieces: Buffer[] = [];
  let bytes = 0;
  let text = 'response cache 2';
  for (const part of parts) {
    text += `\0${Buffer.byteLength(part)}\0`;
    if (typeof part === 'string') text += part;
    else {
      bytes += part.length;
      pieces.push(Buffer.from(text), part);
      text = '';
    }
  }
  pieces.push(Buffer.from(text));
  // To copy a short request takes less time than an object that hashes it piece by piece.
  if (bytes <= MAX_HASHED_AT_ONCE) return hash('sha256', Buffer.concat(pieces), 'buffer');
  const digest = createHash('sha256');
  for (const piece of pieces) digest.update(piece);
  return digest.digest();
}
