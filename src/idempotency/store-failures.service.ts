import { Injectable, Logger } from '@nestjs/common';
import type { Owner } from './fair-shares.js';

const WINDOW_MS = 60_000;

/** Why a response was not stored, or not sent from the cache; null: it is not logged. */
const REASONS = {
  too_large: null,
  memory: 'this process has no memory left for its copy',
  storage: 'the stored responses of its key, its team or all keys reach their limit',
  error: 'another line of the log has the error',
  sending: 'this process has no memory left to send it, so the call was forwarded',
} as const;
export type StoreFailure = keyof typeof REASONS;

class Failures {
  count = 0;
  /** When the next line of the log may come (monotonic ms). */
  quietUntil = -Infinity;

  constructor(
    readonly store: 'idempotency' | 'cache',
    readonly reason: StoreFailure,
  ) {}
}

/** Counts responses that were not stored although they qualify, and logs at most one line a minute for each reason. */
@Injectable()
export class StoreFailures {
  private readonly logger = new Logger('StoredResponses');
  /** Since the start. */
  readonly counts = (['idempotency', 'cache'] as const).flatMap((store) =>
    (Object.keys(REASONS) as StoreFailure[]).map((reason) => new Failures(store, reason)),
  );

  add(store: Failures['store'], reason: StoreFailure, { keyId, teamId }: Owner): void {
    const failures = this.counts.find((one) => one.store === store && one.reason === reason)!;
    failures.count++;
    const now = performance.now();
    if (REASONS[reason] === null || now < failures.quietUntil) return;
    failures.quietUntil = now + WINDOW_MS;
    const what = reason === 'sending' ? 'sent from the cache' : `stored (${store})`;
    this.logger.warn(
      `A response for key ${keyId} of team ${teamId} was not ${what}: ${REASONS[reason]}. ` +
        'This line comes at most once a minute; postern_response_store_failures_total counts all.',
    );
  }
}
