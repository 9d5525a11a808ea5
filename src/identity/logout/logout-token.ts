import { type IdentityToken, RejectedToken } from '../trusts/identity-token.js';
import { isSameIssuer } from '../trusts/issuer-url.js';

/** The member of `events` of a logout token (OpenID Connect Back-Channel Logout 1.0, 2.4). */
const EVENT = 'http://schemas.openid.net/event/backchannel-logout';
const LATEST_S = 120;
/** JWT is the usual value of other tokens (RFC 7519 5.1). */
const TYPES: readonly unknown[] = [undefined, 'logout+jwt', 'application/logout+jwt', 'JWT'];

/** Who has signed out: of a session, or of all. */
export interface Logout {
  /** As the provider calls itself, by which people and sessions are known. */
  readonly issuer: string;
  readonly subject: string | null;
  readonly sid: string | null;
}

/**
 * Reads a logout token (2.6), whose signature remains to be verified. It must be one for certain: the same keys sign ID tokens.
 *
 * @throws RejectedToken
 */
export function readLogout(
  { claims, typ }: IdentityToken,
  issuer: string,
  clientId: string,
  nowS: number,
): Logout {
  const { iss, aud, sub, sid, iat, exp, nonce, events } = claims;
  if (!isSameIssuer(iss, issuer)) throw new RejectedToken('issuer', 'its iss is not OIDC_ISSUER');
  const audiences: unknown[] = Array.isArray(aud) ? aud : [aud];
  if (!audiences.includes(clientId)) throw new RejectedToken('audience', 'its aud is not OIDC_CLIENT_ID');
  if (!TYPES.includes(typ)) throw new RejectedToken('type', 'its typ is that of another token');
  if (typeof events !== 'object' || events === null || !isObject((events as Record<string, unknown>)[EVENT]))
    throw new RejectedToken('type', 'it is no logout token');
  if (nonce !== undefined) throw new RejectedToken('type', 'it has a nonce, as ID tokens have');
  if (typeof iat !== 'number' || Math.abs(nowS - iat) > LATEST_S)
    throw new RejectedToken('lifetime', `its iat is not within ${LATEST_S} seconds`);
  if (typeof exp !== 'number' || exp <= nowS)
    throw new RejectedToken('expired', 'it has expired, or has no exp');
  const logout = { issuer: iss, subject: textOf(sub, 'sub'), sid: textOf(sid, 'sid') };
  if (logout.subject === null && logout.sid === null)
    throw new RejectedToken('subject', 'it has neither sub nor sid');
  return logout;
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function textOf(value: unknown, name: string): string | null {
  if (value === undefined) return null;
  if (typeof value === 'string' && value !== '') return value;
  throw new RejectedToken('subject', `its ${name} is not text`);
}
