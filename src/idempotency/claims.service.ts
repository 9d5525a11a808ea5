import { type BeforeApplicationShutdown, Injectable } from '@nestjs/common';
import { GatewayError } from '../errors/gateway-error.js';
import type { Owner } from './fair-shares.js';
import { patience, withTimeout } from '../platform/patience.js';
import { Claim } from './claim.js';
import { ClaimStore } from './claim-store.service.js';

/** At shutdown: claims that could not be ended by then expire with their leases. */
const STOP = patience('claims at a stop', 2_000);

/** Acquires idempotency claims, and ends those of running calls at shutdown. */
@Injectable()
export class ClaimsService implements BeforeApplicationShutdown {
  /** Claims acquired since the start. */
  claimed = 0;
  private readonly running = new Set<Claim>();

  constructor(private readonly store: ClaimStore) {}

  /**
   * Claims a call. Whoever gets the claim ends it with `end`.
   *
   * @param id of the record
   * @returns null if another call with this record has run or is running
   * @throws GatewayError database_unavailable
   */
  async claim(id: Buffer, owner: Owner, callId: string): Promise<Claim | null> {
    const claim = new Claim(id, owner, callId, this.store);
    try {
      if (!(await this.store.acquire(claim, owner.keyId))) return null;
    } catch (error) {
      throw new GatewayError('database_unavailable', {
        message: 'The Idempotency-Key cannot be checked right now.',
        cause: error,
      });
    }
    this.running.add(claim);
    this.claimed++;
    return claim;
  }

  /** @param interrupted see Claim.close */
  async end(claim: Claim, interrupted: boolean): Promise<void> {
    this.running.delete(claim);
    await claim.close(interrupted);
  }

  async beforeApplicationShutdown(): Promise<void> {
    await withTimeout(STOP.ms, this.endAll());
  }

  private async endAll(): Promise<void> {
    await this.store.stop();
    await Promise.all([...this.running].map((claim) => claim.close(true)));
    await this.store.renew();
  }
}
