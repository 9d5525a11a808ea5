import { Injectable } from '@nestjs/common';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { DataSource } from 'typeorm';
import { networkOf } from '../../platform/client-address.js';
import { digestKey, isWellFormedKey } from '../../keys/key-secret.js';
import { OauthError } from './parameters.js';

/** As for unknown keys: anybody can generate well-formed tokens. */
const PER_SECOND = 50;

/** A static secret ends by the admin API only, so that a leaked one cannot end what its owner relies on. */
const END = `
  UPDATE gateway_key_secret SET expires_at = now()
  WHERE digest = decode($1, 'hex') AND kind <> 'key' AND expires_at > now()`;

/** Ends issued tokens for those who have them. */
@Injectable()
export class IssuedTokens {
  private readonly tries = new RateLimiterMemory({ points: PER_SECOND, duration: 1 });

  constructor(private readonly dataSource: DataSource) {}

  /**
   * Ends a token; nothing if it is none, or has ended (RFC 7009 2.2).
   *
   * @throws OauthError for too many from one address; errors of the database
   */
  async end(token: string, address: string | null): Promise<void> {
    if (!isWellFormedKey(token)) return;
    await this.tries.consume(networkOf(address ?? 'unknown')).catch(() => {
      throw new OauthError('temporarily_unavailable', 'Too many requests. Try again.', 429, 1);
    });
    await this.dataSource.query(END, [digestKey(token)]);
  }
}
