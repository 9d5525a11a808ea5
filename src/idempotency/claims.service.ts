import { setTimeout as sleep } from 'node:timers/promises';
import { type BeforeApplicationShutdown, Injectable, Logger } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { describeError } from '../errors/describe-error.js';
import { GatewayError } from '../errors/gateway-error.js';
import { withTimeout } from '../platform/with-timeout.js';
import { ResponseCipher } from './response-cipher.js';
import { Claim, type ClaimKeeper } from './claim.js';
import { type Holder, IdempotencyRecords, LEASE_MS } from './idempotency-records.js';
import type { StoredResponse } from './stored-response.js';
import { StoredBytes } from './stored-bytes.service.js';

/** Memory of this process for responses that are copied or stored. Further calls run, but are not stored. */
const BUFFERED_BYTES = 256 * 1024 * 1024;
/** A response that Postgres does not store is retried after this, STORE_TRIES times. */
const STORE_RETRY_MS = 1_000;
const STORE_TRIES = 60;
/** Claims that Postgres may or may not have; further ones expire with their leases. */
const MOST_UNCERTAIN = 10_000;
/** How long a statement that timed out here may still be executed by a server that was stalled. */
const UNCERTAIN_MS = 60_000;
/** At shutdown: claims that could not be ended by then expire with their leases. */
const STOP_MS = 2_000;

/** Acquires idempotency claims and guarantees that each one is stored, released or abandoned. */
@Injectable()
export class ClaimsService implements ClaimKeeper, BeforeApplicationShutdown {
  /** Claims acquired since the start. */
  claimed = 0;
  private readonly logger = new Logger('Idempotency');
  private readonly held = new Set<Claim>();
  /** Claims of calls that did not run, whose record may exist, each with the time until which it may still appear. */
  private readonly uncertain = new Map<Holder, number>();
  private readonly storing = new Set<Promise<void>>();
  private buffered = 0;
  private stopped = false;

  constructor(
    private readonly records: IdempotencyRecords,
    private readonly storedBytes: StoredBytes,
    private readonly cipher: ResponseCipher,
  ) {}

  /**
   * Claims a call.
   *
   * @param id of the record
   * @returns null if another call with this record has run or is running
   * @throws GatewayError database_unavailable
   */
  async claim(id: Buffer, keyId: string, callId: string): Promise<Claim | null> {
    const claim = new Claim(id, keyId, callId, this);
    try {
      if (!(await this.records.claim(claim, keyId))) return null;
    } catch (error) {
      this.undo(claim);
      throw new GatewayError('database_unavailable', {
        message: 'The Idempotency-Key cannot be checked right now.',
        cause: error,
      });
    }
    this.held.add(claim);
    this.claimed++;
    return claim;
  }

  reserve(bytes: number): boolean {
    if (this.buffered + bytes > BUFFERED_BYTES) return false;
    this.buffered += bytes;
    return true;
  }

  free(bytes: number): void {
    this.buffered -= bytes;
  }

  /** After the last retry, duplicate requests get idempotency_outcome_unknown. */
  store(claim: Claim, response: StoredResponse): Promise<void> | null {
    const sealed = this.seal(claim, response);
    if (sealed === null || !this.storedBytes.take(claim.keyId, sealed.length)) return null;
    const stored = this.storeWithRetries(claim, sealed).finally(() => {
      this.held.delete(claim);
      this.storing.delete(stored);
    });
    this.storing.add(stored);
    return stored;
  }

  /** If Postgres is unavailable, the release is retried in the background. */
  async release(claim: Claim): Promise<void> {
    this.held.delete(claim);
    try {
      await this.records.release([claim]);
    } catch (error) {
      this.logger.warn(`Call ${claim.callId} could not be released yet: ${describeError(error)}`);
      this.undo(claim);
    }
  }

  /** If Postgres is unavailable, the lease expires instead. */
  async abandon(claim: Claim): Promise<void> {
    this.held.delete(claim);
    await this.records.abandon([claim]).catch((error: unknown) => {
      this.logger.warn(`Call ${claim.callId} could not be abandoned: ${describeError(error)}`);
    });
  }

  @Interval(LEASE_MS / 3)
  async renew(): Promise<void> {
    try {
      if (this.held.size > 0) await this.records.renew([...this.held]);
      if (this.uncertain.size === 0) return;
      const askedAt = performance.now();
      await this.records.release([...this.uncertain.keys()]);
      for (const [claim, until] of this.uncertain) if (until < askedAt) this.uncertain.delete(claim);
    } catch (error) {
      this.logger.debug(`Claims are not renewed: ${describeError(error)}`);
    }
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopped = true;
    await withTimeout(STOP_MS, this.endAll());
  }

  private async endAll(): Promise<void> {
    await Promise.all(this.storing);
    await Promise.all([...this.held].map((claim) => claim.close(true)));
    if (this.uncertain.size > 0) await this.renew();
  }

  /** The statement may have been executed although it failed here, or may still be. */
  private undo(claim: Holder): void {
    if (this.uncertain.size < MOST_UNCERTAIN) {
      this.uncertain.set(claim, performance.now() + UNCERTAIN_MS);
    }
  }

  private seal(claim: Claim, response: StoredResponse): Buffer | null {
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

  private async storeWithRetries(claim: Claim, sealed: Buffer): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await this.records.store(claim, sealed);
        return;
      } catch (error) {
        if (tries === STORE_TRIES || this.stopped) {
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
