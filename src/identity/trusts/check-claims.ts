import { BlockList, isIP } from 'node:net';
import { claimOf, isMet } from './conditions.js';
import { type IdentityToken, RejectedToken, type RejectionReason } from './identity-token.js';
import { effectiveConditions } from './presets.js';
import type { Trust } from './trust.entity.js';

/** How far the clocks of an issuer and of Postgres may differ. */
const LEEWAY_S = 30;
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

/** What a token is held against beside its trust. */
export interface Around {
  /** Of the client; null if it is unknown. */
  readonly address: string | null;
  /** OIDC_CLIENT_ID. A trust may be older: it accepts no ID tokens of the console, which everybody who signs in there has. */
  readonly oidcClientId: string | undefined;
}

/** One thing that is asked of a token. */
export interface Check {
  /** Such as `audience` or `claims.ref`. */
  readonly name: string;
  /** null if it is met. */
  readonly problem: RejectedToken | null;
}

/**
 * What a trust asks of the claims of a token, in order. Whether it has begun or expired is decided by Postgres's clock when a
 * token is issued for it.
 */
export function* checksOf(
  { claims, typ }: IdentityToken,
  trust: Terms,
  { address, oidcClientId }: Around,
): Generator<Check, void> {
  const { iss, aud, sub } = claims;
  const check = (name: RejectionReason, met: boolean, detail: string): Check => ({
    name,
    problem: met ? null : new RejectedToken(name, detail),
  });
  yield check('issuer', iss === trust.issuer, 'its iss is not the issuer of the trust');
  const audience: unknown = Array.isArray(aud) && aud.length === 1 ? aud[0] : aud;
  const isOfConsole = trust.audience === oidcClientId;
  yield check(
    'audience',
    audience === trust.audience && !isOfConsole,
    isOfConsole
      ? 'the audience of the trust is OIDC_CLIENT_ID, that of ID tokens'
      : 'its aud must be the audience of the trust, and nothing else',
  );
  // A logout token is signed with the same keys (OpenID Connect Back-Channel Logout 2.4).
  const isEvent =
    (typeof typ === 'string' && /(?:^|\/)logout\+jwt$/i.test(typ)) || Object.hasOwn(claims, 'events');
  yield check('type', !isEvent, 'it is a logout token or another event');
  yield check('subject', typeof sub === 'string' && sub !== '', 'its sub is not text');
  const lifetime = lifetimeProblem(claims, trust.longestJwtMinutes);
  yield check('lifetime', lifetime === null, lifetime ?? '');
  yield check('address', isFrom(address, trust.cidrs), 'the client is in none of the networks of the trust');
  for (const [name, accepted] of Object.entries(
    effectiveConditions(trust.preset, trust.issuer, trust.claims),
  ))
    yield {
      name: `claims.${name}`,
      problem: isMet(accepted, claimOf(claims, name)) ? null : new RejectedToken('claim', name),
    };
}

/** Holds the claims of a token with a verified signature against the terms of a trust. @throws RejectedToken */
export function checkClaims(token: IdentityToken, trust: Terms, around: Around): VerifiedToken {
  for (const { problem } of checksOf(token, trust, around)) if (problem !== null) throw problem;
  return { subject: subjectOf(token.claims.sub as string), ...timesOf(token.claims) };
}

/** When a token whose times have been checked may be exchanged, in epoch seconds. */
export function timesOf(claims: Record<string, unknown>): Pick<VerifiedToken, 'from' | 'until'> {
  const { iat, exp, nbf = iat } = claims as { iat: number; exp: number; nbf?: number };
  return { from: Math.max(iat, nbf) - LEEWAY_S, until: exp + LEEWAY_S };
}

function lifetimeProblem({ iat, exp, nbf }: Record<string, unknown>, longestMinutes: number): string | null {
  if (!isTime(iat) || !isTime(exp) || (nbf !== undefined && !isTime(nbf)))
    return 'its iat or exp is missing, or a time is no number';
  if (exp <= iat) return 'its exp is not after its iat';
  return exp - iat > longestMinutes * 60 ? `it lives longer than ${longestMinutes} minutes` : null;
}

/** The issuer, the audience and the claims that the conditions name, for the list of failures: others may be personal. */
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
export function subjectOf(sub: string): string {
  return sub
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\u{fffd}')
    .slice(0, MAX_SUBJECT)
    .toWellFormed();
}
