import { Injectable, Logger } from '@nestjs/common';
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import { networkOf } from '../platform/client-address.js';

/** Wrong tokens that one client address may send in a window before it is told to wait. */
const POINTS = 10;
const WINDOW_S = 60;
/** Addresses counted apart; past it all others share one count, so that no flood of addresses fills memory. */
const ADDRESSES = 10_000;
const ALL_OTHERS = 'others';

/**
 * Counts wrong admin tokens by client address, and tells the log of them: of each window the first, the tenth, the
 * hundredth and so on, so that guessing is seen and does not flood the log.
 */
@Injectable()
export class TokenFailures {
  private readonly logger = new Logger('Admin');
  private readonly limiter = new RateLimiterMemory({ points: POINTS, duration: WINDOW_S });
  /** When the window of each counted address ends (monotonic ms). */
  private readonly windows = new Map<string, number>();

  /** @returns seconds to wait, or 0 while there are few */
  async count(address: string | null): Promise<number> {
    let result: RateLimiterRes;
    try {
      result = await this.limiter.consume(this.counted(address ?? 'unknown'));
    } catch (refused) {
      result = refused as RateLimiterRes;
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
