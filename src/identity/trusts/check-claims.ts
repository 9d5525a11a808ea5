import { BlockList, isIP } from 'node:net';
import { claimOf, unmetCondition } from './conditions.js';
import { type IdentityToken, RejectedToken } from './identity-token.js';
import { effectiveConditions } from './presets.js';
import type { Trust } from './trust.entity.js';

/** How far the clocks of an issuer and of Postgres may differ. */
export const LEEWAY_S = 30;
const MAX_SUBJECT = 256;

/** The settings of a trust that a token is held against. */
export type Terms = Pick<Trust, 'preset' | 'issuer' | 'audience' | 'claims' | 'cidrs' | 'longestJwtMinutes'>;

/** What a verified token says, beside what its trust asks for. */
export interface VerifiedToken {
  readonly subject: string;
  /** In which Postgres's clock must be, in epoch seconds. */
  readonly from: number;
  readonly until: number;
}

/**
 * Holds the claims of a token with a verified signature against the terms of a trust. Whether it has begun or expired is
 * decided by Postgres's clock when a token is issued for it.
 *
 * @param address of the client; null if it is unknown
 * @throws RejectedToken
 */
export function checkClaims(
  { claims, typ }: IdentityToken,
  trust: Terms,
  address: string | null,
): VerifiedToken {
  const { iss, aud, sub, iat, exp, nbf } = claims;
  if (iss !== trust.issuer) throw new RejectedToken('issuer', 'its iss is not the issuer of the trust');
  const audience: unknown = Array.isArray(aud) && aud.length === 1 ? aud[0] : aud;
  if (audience !== trust.audience)
    throw new RejectedToken('audience', 'its aud must be the audience of the trust, and nothing else');
  // A logout token is signed with the same keys (OpenID Connect Back-Channel Logout 2.4).
  if ((typeof typ === 'string' && /(?:^|\/)logout\+jwt$/i.test(typ)) || Object.hasOwn(claims, 'events'))
    throw new RejectedToken('type', 'it is a logout token or another event');
  if (typeof sub !== 'string' || sub === '') throw new RejectedToken('subject', 'its sub is not text');
  if (!isTime(iat) || !isTime(exp) || (nbf !== undefined && !isTime(nbf)))
    throw new RejectedToken('lifetime', 'its iat or exp is missing, or a time is no number');
  if (exp <= iat) throw new RejectedToken('lifetime', 'its exp is not after its iat');
  if (exp - iat > trust.longestJwtMinutes * 60)
    throw new RejectedToken('lifetime', `it lives longer than ${trust.longestJwtMinutes} minutes`);
  if (!isFrom(address, trust.cidrs))
    throw new RejectedToken('address', 'the client is in none of the networks of the trust');
  const unmet = unmetCondition(effectiveConditions(trust.preset, trust.issuer, trust.claims), claims);
  if (unmet !== null) throw new RejectedToken('claim', unmet);
  return {
    subject: subjectOf(sub),
    from: Math.max(iat, nbf ?? iat) - LEEWAY_S,
    until: exp + LEEWAY_S,
  };
}

/** Only claims that the conditions name, for the list of failures: others may be personal. */
export function namedClaims({ claims }: IdentityToken, trust: Terms): Record<string, unknown> {
  const names = Object.keys(effectiveConditions(trust.preset, trust.issuer, trust.claims));
  return Object.fromEntries(
    ['iss', 'aud', ...names].flatMap((name) => {
      const value = claimOf(claims, name);
      return value === undefined ? [] : [[name, shown(value)]];
    }),
  );
}

/** As jsonb can hold it: no escape for U+0000 or for half a character. Of other values, the beginning of their JSON. */
function shown(value: unknown): unknown {
  const text = JSON.stringify(value);
  if (text.length <= MAX_SUBJECT && !/\\u(?:0000|d[89a-f])/.test(text)) return value;
  return `${text.slice(0, MAX_SUBJECT).toWellFormed()}…`;
}

/** A NumericDate (RFC 7519 2). */
function isTime(value: unknown): value is number {
  return typeof value === 'number' && value > 0 && value < 1e11;
}

function isFrom(address: string | null, networks: readonly string[] | null): boolean {
  if (networks === null) return true;
  if (address === null) return false;
  const list = new BlockList();
  for (const network of networks) {
    const [base, prefix] = network.split('/') as [string, string | undefined];
    const family = isIP(base) === 6 ? 'ipv6' : 'ipv4';
    list.addSubnet(base, Number(prefix ?? (family === 'ipv6' ? 128 : 32)), family);
  }
  return list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
}

/** For the request log: at most 256 characters, none of which changes how a reader or a terminal shows a line. */
function subjectOf(sub: string): string {
  return sub
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\u{fffd}')
    .slice(0, MAX_SUBJECT)
    .toWellFormed();
}
