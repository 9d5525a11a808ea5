import { Injectable, Logger } from '@nestjs/common';
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import { networkOf } from '../platform/client-address.js';

/** Wrong tokens that one client address may send per window before it gets Retry-After. */
const POINTS = 10;
const WINDOW_S = 60;
/** Addresses with a count of their own. All further addresses share one count, so that memory stays bounded. */
const ADDRESSES = 10_000;
const ALL_OTHERS = 'others';

/**
 * Counts wrong admin tokens by client address. It logs the first, the tenth, the hundredth and so on of each window, so
 * that guessing is visible and does not flood the log.
 */
@Injectable()
export class TokenFailures {
  private readonly logger = new Logger('Admin');
  private readonly limiter = new RateLimiterMemory({ points: POINTS, duration: WINDOW_S });
  /** When the window of each counted address ends (monotonic ms). */
  private readonly windows = new Map<string, number>();

  /** @returns seconds to wait; 0 below the limit */
  async count(address: string | null): Promise<number> {
    let result: RateLimiterRes;
    try {
      result = await this.limiter.consume(this.counted(address ?? 'unknown'));
    } catch (rejected) {
      result = rejected as RateLimiterRes;
    }
    const tries = result.consumedPoints;
    if (/^10*$/.test(String(tries))) {
      this.logger.warn(`${address ?? 'An unknown address'} sent a wrong admin token (${tries} in a minute).`);
    }
    return tries > POINTS ? Math.ceil(result.msBeforeNext / 1_000) : 0;
  }

  private counted(address: string): string {
    const network = networkOf(address);
    const now = performance.now();
    if ((this.windows.get(network) ?? 0) > now) return network;
    if (this.windows.size >= ADDRESSES) {
      for (const [known, end] of this.windows) if (end <= now) this.windows.delete(known);
      if (this.windows.size >= ADDRESSES) return ALL_OTHERS;
    }
    this.windows.set(network, now + WINDOW_S * 1_000);
    return network;
  }
}
