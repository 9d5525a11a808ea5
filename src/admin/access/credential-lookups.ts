import { HttpException, HttpStatus, Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { networkOf } from '../../platform/client-address.js';

/** Unknown credentials that one client address (or IPv6 network) may try in a second: anybody can make up well-formed ones. */
const UNKNOWN_PER_SECOND = 50;
const MAX_KNOWN = 1_000;
const KNOWN_MS = 3_600_000;
const MAX_UNKNOWN = 10_000;
const UNKNOWN_MS = 2_000;

/** More unknown credentials came from an address than are looked up. */
export class TooManyUnknown extends HttpException {
  constructor() {
    super(
      'Too many unknown tokens or sessions came from this address. Try again in a second.',
      HttpStatus.TOO_MANY_REQUESTS,
    );
  }
}

/** Limits the look-ups of tokens and sessions that do not exist. */
@Injectable()
export class CredentialLookups {
  private readonly tries = new RateLimiterMemory({ points: UNKNOWN_PER_SECOND, duration: 1 });
  /** Digests of those found lately, which are not limited: whoever is signed in stays so beside a flood. */
  private readonly known = new LRUCache<string, true>({ max: MAX_KNOWN, ttl: KNOWN_MS });
  private readonly unknown = new LRUCache<string, true>({ max: MAX_UNKNOWN, ttl: UNKNOWN_MS });

  /**
   * @param read looks the credential up
   * @param address of the client
   * @param isOurs the gateway made it, now or once: nobody can make up many of these, so they are not limited
   * @throws TooManyUnknown
   */
  async find<T>(
    digest: string,
    address: string | null,
    read: () => Promise<T | undefined>,
    isOurs = false,
  ): Promise<T | undefined> {
    if (this.unknown.has(digest)) return undefined;
    const isKnown = isOurs || this.known.has(digest);
    const network = networkOf(address ?? 'unknown');
    if (!isKnown) {
      await this.tries.consume(network).catch(() => {
        throw new TooManyUnknown();
      });
    }
    let isUnknown = false;
    try {
      const found = await read();
      isUnknown = found === undefined;
      if (isUnknown) {
        // It was removed or has ended.
        this.known.delete(digest);
        this.unknown.set(digest, true);
      } else {
        this.known.set(digest, true);
      }
      return found;
    } finally {
      if (!isKnown && !isUnknown) await this.tries.reward(network);
    }
  }
}
