import { setTimeout as sleep } from 'node:timers/promises';
import { type BeforeApplicationShutdown, Injectable, Logger } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { describeError } from '../errors/describe-error.js';
import { GatewayError } from '../errors/gateway-error.js';
import { withTimeout } from '../platform/with-timeout.js';
import { AnswerBox } from './response-cipher.js';
import { Claim, type ClaimKeeper } from './claim.js';
import { type Holder, IdempotencyRecords, LEASE_MS } from './idempotency-records.js';
import type { StoredAnswer } from './stored-response.js';
import { StoredBytes } from './stored-bytes.service.js';

/** Answers that are gathered, stored or given again, in this process. Calls beyond it run, and are not kept. */
const GATHERED_BYTES = 256 * 1024 * 1024;
/** An answer that Postgres does not take is offered again after this, for as long as STORE_TRIES last. */
const STORE_AGAIN_MS = 1_000;
const STORE_TRIES = 60;
/** Claims of which nobody knows whether Postgres has them; past it they lapse on their own. */
const UNCERTAIN_AT_MOST = 10_000;
/** How long a statement that was given up may still be carried out, by a server that stood still and read it late. */
const UNCERTAIN_MS = 60_000;
/** What Postgres has not been told of the last calls by then, their leases tell it when they run out. */
const STOP_MS = 2_000;

/** Says who may run a call, and sees to it that every claim made here comes to an end that repeats can rely on. */
@Injectable()
export class ClaimsService implements ClaimKeeper, BeforeApplicationShutdown {
  /** Calls that got the right to run, since the start. */
  claimed = 0;
  private readonly logger = new Logger('Idempotency');
  private readonly held = new Set<Claim>();
  /** Claims of calls that did not run, whose record may be there: with the time until which it may still come. */
  private readonly uncertain = new Map<Holder, number>();
  private readonly storing = new Set<Promise<void>>();
  private gathered = 0;
  private stopped = false;

  constructor(
    private readonly records: IdempotencyRecords,
    private readonly storedBytes: StoredBytes,
    private readonly box: AnswerBox,
  ) {}

  /**
   * @param id of the record
   * @returns null when another call has been made, or is being made, under it
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
    if (this.gathered + bytes > GATHERED_BYTES) return false;
    this.gathered += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.gathered -= bytes;
  }

  /** Past the last try repeats are told that the outcome is unknown. */
  store(claim: Claim, answer: StoredAnswer): Promise<void> | null {
    const sealed = this.seal(claim, answer);
    if (sealed === null || !this.storedBytes.take(claim.keyId, sealed.length)) return null;
    const stored = this.offer(claim, sealed).finally(() => {
      this.held.delete(claim);
      this.storing.delete(stored);
    });
    this.storing.add(stored);
    return stored;
  }

  /** What Postgres is not told now it is told behind. */
  async release(claim: Claim): Promise<void> {
    this.held.delete(claim);
    try {
      await this.records.release([claim]);
    } catch (error) {
      this.logger.warn(`Call ${claim.callId} is not released yet: ${describeError(error)}`);
      this.undo(claim);
    }
  }

  /** Where Postgres cannot be told, the lease runs out. */
  async abandon(claim: Claim): Promise<void> {
    this.held.delete(claim);
    await this.records.abandon([claim]).catch((error: unknown) => {
      this.logger.warn(`Call ${claim.callId} is not given up yet: ${describeError(error)}`);
    });
  }

  @Interval(LEASE_MS / 3)
  async keep(): Promise<void> {
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
    if (this.uncertain.size > 0) await this.keep();
  }

  /** The statement may have been carried out although its answer did not come, or may be yet. */
  private undo(claim: Holder): void {
    if (this.uncertain.size < UNCERTAIN_AT_MOST) {
      this.uncertain.set(claim, performance.now() + UNCERTAIN_MS);
    }
  }

  private seal(claim: Claim, answer: StoredAnswer): Buffer | null {
    try {
      return this.box.seal(claim, answer);
    } catch (error) {
      // It takes copies of the answer, and memory may be short.
      this.logger.error(`The answer to call ${claim.callId} cannot be sealed: ${describeError(error)}`);
      return null;
    }
  }

  private async offer(claim: Claim, sealed: Buffer): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await this.records.store(claim, sealed);
        return;
      } catch (error) {
        if (tries === STORE_TRIES || this.stopped) {
          this.logger.error(`The answer to call ${claim.callId} could not be kept: ${describeError(error)}`);
          return;
        }
        await sleep(STORE_AGAIN_MS);
      }
    }
  }
}
