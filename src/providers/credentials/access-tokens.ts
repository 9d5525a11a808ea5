import { GatewayError } from '../../errors/gateway-error.js';
import type { Issued } from './token-endpoint.js';

/** A token is renewed this long before its end, or after half of its life if that is later. */
const RENEW_BEFORE_MS = 300_000;
/** After a failed request, the next one waits this long; each further failure doubles the time. */
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 30_000;
/** A token that the provider rejected is dropped at most once in this time: the reason may be another one. */
const REJECTION_PAUSE_MS = 30_000;

interface Held<T> {
  readonly value: T;
  readonly endsAt: Instant;
  readonly renewAt: Instant;
}

/** A time on both clocks. The monotonic one stands still while a machine sleeps; the wall clock may be set back. */
interface Instant {
  readonly monotonic: number;
  readonly wall: number;
}

/** The clocks, in ms. */
export interface Clocks {
  monotonic(): number;
  wall(): number;
}

const CLOCKS: Clocks = { monotonic: () => performance.now(), wall: () => Date.now() };

/**
 * The access token, or any other credential that expires, of one provider: requested when a call needs it, renewed before
 * its end while calls go on with the old one, with one request under way at most.
 */
export class AccessTokens<T = string> {
  private held: Held<T> | null = null;
  private pending: Promise<T> | null = null;
  private failures = 0;
  /** No request before this (monotonic). */
  private pausedUntil = -Infinity;
  /** No token is dropped before this (monotonic). */
  private keptUntil = -Infinity;

  /**
   * @param request requests a new token
   * @param onFailure called with the reason when a request failed, and with whether calls go on with a token that has not ended
   */
  constructor(
    private readonly request: () => Promise<Issued<T>>,
    private readonly onFailure: (reason: Error, hasToken: boolean) => void,
    private readonly clocks: Clocks = CLOCKS,
  ) {}

  /**
   * Returns a token that has not ended: at once if there is one.
   *
   * @throws GatewayError provider_credential_unavailable
   */
  get(): T | Promise<T> {
    const { held } = this;
    if (held !== null && !this.isPast(held.renewAt)) return held.value;
    if (this.pending === null && this.clocks.monotonic() >= this.pausedUntil) this.renew();
    if (held !== null && !this.isPast(held.endsAt)) return held.value;
    if (this.pending !== null) return this.pending;
    throw unavailable();
  }

  /** The provider responded with 401 to a call with this token, which may have been revoked: the next call gets a new one. */
  rejected(token: T): void {
    const now = this.clocks.monotonic();
    // Of the calls that were under way with it, the first one drops it.
    if (this.held?.value !== token || now < this.keptUntil) return;
    this.held = null;
    this.keptUntil = now + REJECTION_PAUSE_MS;
  }

  private renew(): void {
    const from = this.now();
    this.pending = this.request()
      .then(
        ({ value, lifeMs }) => {
          this.failures = 0;
          const renewAfter = Math.max(lifeMs - RENEW_BEFORE_MS, lifeMs / 2);
          this.held = { value, endsAt: later(from, lifeMs), renewAt: later(from, renewAfter) };
          return value;
        },
        (error: Error) => {
          const pause = Math.min(FIRST_PAUSE_MS * 2 ** this.failures++, MAX_PAUSE_MS);
          this.pausedUntil = this.clocks.monotonic() + pause;
          this.onFailure(error, this.held !== null && !this.isPast(this.held.endsAt));
          throw unavailable(error);
        },
      )
      .finally(() => (this.pending = null));
    // A call that goes on with the old token does not wait for it.
    this.pending.catch(() => {});
  }

  private now(): Instant {
    return { monotonic: this.clocks.monotonic(), wall: this.clocks.wall() };
  }

  private isPast({ monotonic, wall }: Instant): boolean {
    return this.clocks.monotonic() >= monotonic || this.clocks.wall() >= wall;
  }
}

function later({ monotonic, wall }: Instant, ms: number): Instant {
  return { monotonic: monotonic + ms, wall: wall + ms };
}

function unavailable(cause?: Error): GatewayError {
  return new GatewayError('provider_credential_unavailable', { cause });
}
