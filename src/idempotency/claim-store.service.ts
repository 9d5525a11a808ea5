import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { describeError } from '../errors/describe-error.js';
import type { FairShares, Owner } from './fair-shares.js';
import { ResponseCipher } from './response-cipher.js';
import { type Holder, IdempotencyRecords, LEASE_MS } from './idempotency-records.js';
import type { LostRecord } from './lost-records.js';
import { ResponseMemory } from './response-memory.js';
import { StoreFailures } from './store-failures.service.js';
import type { StoredResponse } from './stored-response.js';
import { StoredBytes } from './stored-bytes.service.js';

/** A response that Postgres does not store is retried after this, STORE_TRIES times. */
const STORE_RETRY_MS = 1_000;
const STORE_TRIES = 60;
/** Claims that Postgres may or may not have; further ones expire with their leases. */
const MAX_UNCERTAIN = 10_000;
/** How long a statement that timed out here may still be executed by a server that was stalled. */
const UNCERTAIN_MS = 60_000;

/** Keeps claims in Postgres until they are stored, released or abandoned. */
@Injectable()
export class ClaimStore {
  private readonly logger = new Logger('Idempotency');
  /** Their leases are renewed. The gateway key of each. */
  private readonly held = new Map<Holder, string>();
  /** Those that were held when Postgres was found to have lost something, and were not released since. */
  private readonly atLoss = new Map<Holder, string>();
  /** Claims of calls that did not run, whose record may exist, each with the time until which it may still appear. */
  private readonly uncertain = new Map<Holder, number>();
  private readonly storing = new Set<Promise<void>>();
  private stopped = false;

  constructor(
    private readonly records: IdempotencyRecords,
    private readonly storedBytes: StoredBytes,
    private readonly cipher: ResponseCipher,
    private readonly responses: ResponseMemory,
    readonly failures: StoreFailures,
  ) {}

  /** For copies of responses. */
  get memory(): FairShares {
    return this.responses.copies;
  }

  /** Could a response of this many bytes be stored in Postgres? */
  hasStorage(owner: Owner, bytes: number): boolean {
    return this.storedBytes.hasRoom(owner, bytes);
  }

  /** @returns false if another call with this record has run or is running */
  async acquire(claim: Holder, keyId: string): Promise<boolean> {
    try {
      if (!(await this.records.claim(claim, keyId))) return false;
    } catch (error) {
      this.undo(claim);
      throw error;
    }
    this.held.set(claim, keyId);
    return true;
  }

  /**
   * Stores a response for duplicate requests, which get idempotency_outcome_unknown if the last retry fails as well.
   *
   * @returns null when it cannot be stored; otherwise never rejects
   */
  store(claim: Holder, owner: Owner, response: StoredResponse): Promise<void> | null {
    const sealed = this.seal(claim, response);
    const isTaken = sealed !== null && this.storedBytes.take(owner, sealed.length);
    if (!isTaken) {
      this.failures.add('idempotency', sealed === null ? 'error' : 'storage', owner);
      return null;
    }
    const stored = this.storeWithRetries(claim, owner, sealed).finally(() => {
      this.held.delete(claim);
      this.storing.delete(stored);
    });
    this.storing.add(stored);
    return stored;
  }

  /** Lets a duplicate request run the call. Never rejects: if Postgres is unavailable, it is retried in the background. */
  async release(claim: Holder): Promise<void> {
    this.held.delete(claim);
    this.atLoss.delete(claim);
    try {
      await this.records.release([claim]);
    } catch (error) {
      this.logger.warn(`Call ${claim.callId} could not be released yet: ${describeError(error)}`);
      this.undo(claim);
    }
  }

  /**
   * Marks the outcome of the call as unknown: duplicate requests get idempotency_outcome_unknown. Never rejects: if
   * Postgres is unavailable, the lease expires instead.
   */
  async abandon(claim: Holder): Promise<void> {
    this.held.delete(claim);
    await this.records.abandon([claim]).catch((error: unknown) => {
      this.logger.warn(`Call ${claim.callId} could not be abandoned: ${describeError(error)}`);
    });
  }

  @Interval(LEASE_MS / 3)
  async renew(): Promise<void> {
    try {
      if (this.held.size > 0) await this.records.renew([...this.held.keys()]);
      if (this.uncertain.size === 0) return;
      const askedAt = performance.now();
      await this.records.release([...this.uncertain.keys()]);
      for (const [claim, until] of this.uncertain) if (until < askedAt) this.uncertain.delete(claim);
    } catch (error) {
      this.logger.debug(`Claims are not renewed: ${describeError(error)}`);
    }
  }

  /** Call before claims are put back: a call that ends until then finds no claim that it could end. */
  noteHeld(): void {
    for (const [claim, keyId] of this.held) this.atLoss.set(claim, keyId);
  }

  /**
   * Puts back the claims that Postgres has lost: of calls under way, and of those that have ended since `noteHeld()`, whose
   * outcome is unknown because their response was not stored.
   *
   * @returns how many
   */
  async putBack(): Promise<number> {
    const noted = [...this.atLoss];
    const ended = noted.filter(([claim]) => !this.held.has(claim));
    const held = await this.records.putBackHeld(lostOf(this.held));
    const count = held + (await this.records.putBackAbandoned(lostOf(ended)));
    for (const [claim] of noted) this.atLoss.delete(claim);
    return count;
  }

  /** Nothing is put back. */
  forgetNoted(): void {
    this.atLoss.clear();
  }

  /** Waits for responses that are being stored; none is retried from here on. */
  async stop(): Promise<void> {
    this.stopped = true;
    await Promise.all(this.storing);
  }

  /** The statement may have been executed although it failed here, or may still be. */
  private undo(claim: Holder): void {
    if (this.uncertain.size < MAX_UNCERTAIN) {
      this.uncertain.set(claim, performance.now() + UNCERTAIN_MS);
    }
  }

  private seal(claim: Holder, response: StoredResponse): Buffer | null {
    try {
      return this.cipher.seal(claim, response);
    } catch (error) {
      // Encryption copies the response, and memory may be short.
      this.logger.error(
        `The response of call ${claim.callId} could not be encrypted: ${describeError(error)}`,
      );
      return null;
    }
  }

  private async storeWithRetries(claim: Holder, owner: Owner, sealed: Buffer): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await this.records.store(claim, sealed);
        return;
      } catch (error) {
        if (tries === STORE_TRIES || this.stopped) {
          this.failures.add('idempotency', 'error', owner);
          this.logger.error(
            `The response of call ${claim.callId} could not be stored: ${describeError(error)}`,
          );
          return;
        }
        await sleep(STORE_RETRY_MS);
      }
    }
  }
}

function lostOf(claims: Iterable<[Holder, string]>): LostRecord[] {
  return [...claims].map(([{ id, callId }, keyId]) => ({ id, callId, keyId }));
}
