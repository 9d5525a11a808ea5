import { Injectable } from '@nestjs/common';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { DataSource } from 'typeorm';
import { recordChange } from '../../audit/record-change.js';
import type { Actor } from '../../platform/actor.js';
import { networkOf } from '../../platform/client-address.js';
import { digestKey, isWellFormedKey, isWellFormedRefreshToken } from '../../keys/key-secret.js';
import { OauthError } from './parameters.js';

/** What the audit log calls whoever ends a token that they have. */
export const BY_BEARER = 'oauth-revoke';

/** As for unknown keys: anybody can generate well-formed tokens. */
const PER_SECOND = 50;

/** A static secret ends by the admin API only, so that a leaked one cannot end what its owner relies on. */
const END = `
  UPDATE gateway_key_secret s SET expires_at = now()
  FROM gateway_key k JOIN team t ON t.id = k.team_id
  WHERE k.id = s.key_id AND s.digest = decode($1, 'hex') AND s.kind <> 'key' AND s.expires_at > now()
  RETURNING s.id, s.subject AS name, s.kind, s.prefix, t.name || '/' || k.name AS key`;

interface EndedToken {
  id: string;
  /** Whom it was issued to. */
  name: string;
  kind: string;
  prefix: string;
  key: string;
}

/** Ends issued tokens for those who have them. */
@Injectable()
export class IssuedTokens {
  /** Ends the sign-in of a refresh token. Set by the module of the sign-ins. */
  endSignIn: ((refreshToken: string, by: Actor) => Promise<void>) | null = null;
  private readonly tries = new RateLimiterMemory({ points: PER_SECOND, duration: 1 });

  constructor(private readonly dataSource: DataSource) {}

  /**
   * Ends a token, and with a refresh token its sign-in, and records it; nothing if it is none, or has ended (RFC 7009 2.2).
   *
   * @throws OauthError for too many from one address; errors of the database
   */
  async end(token: string, address: string | null): Promise<void> {
    const isRefreshToken = this.endSignIn !== null && isWellFormedRefreshToken(token);
    if (!isRefreshToken && !isWellFormedKey(token)) return;
    await this.tries.consume(networkOf(address ?? 'unknown')).catch(() => {
      throw new OauthError('temporarily_unavailable', 'Too many requests. Try again.', 429, 1);
    });
    // Whoever has it: it says whom it was issued to, not who ends it.
    const by = { name: BY_BEARER, address };
    if (isRefreshToken) return this.endSignIn!(token, by);
    await this.dataSource.transaction(async (manager) => {
      // TypeORM returns the rows of an UPDATE with their number.
      const [[before]] = await manager.query<[EndedToken[], number]>(END, [digestKey(token)]);
      if (before === undefined) return;
      await recordChange(manager, by, { action: 'ended', type: 'issued_token', before, after: null });
    });
  }
}
