import { hasRepeatedMembers } from '../../bodies/repeated-members.js';

/** Why an identity token was not accepted, for administrators: the caller is told nothing. */
export const REJECTION_REASONS = [
  'unknown_trust',
  'disabled',
  'malformed',
  'algorithm',
  'keys_unavailable',
  'unknown_key',
  'signature',
  'issuer',
  'audience',
  'type',
  'expired',
  'not_yet_valid',
  'lifetime',
  'subject',
  'address',
  'claim',
] as const;
export type RejectionReason = (typeof REJECTION_REASONS)[number];

/** An identity token that is not accepted. */
export class RejectedToken extends Error {
  override readonly name = 'RejectedToken';

  /** @param detail what was not met, without the token; it may name a claim, and never holds its value */
  constructor(
    readonly reason: RejectionReason,
    readonly detail: string,
  ) {
    super(`${reason}: ${detail}`);
  }

  /** For administrators: a sentence also where the detail is the name of a claim. */
  get words(): string {
    return this.reason === 'claim' ? `the claim ${this.detail} does not have an accepted value` : this.detail;
  }
}

/** What every issuer that Postern knows signs with: RSA, ECDSA and Edwards curves. */
export const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const;

/** As long as Anthropic's SDKs send; tokens of real issuers have 1 to 4 KB. */
const MAX_LENGTH = 16_384;
const MAX_CLAIMS = 500;
const MAX_DEPTH = 16;
/** Parameters of the header with which a token would name the key that it is verified with (RFC 7515 4.1), or change how it is read. */
const FOREIGN_KEYS = ['jwk', 'jku', 'x5u', 'x5c', 'crit', 'zip'] as const;

/** An identity token whose signature has not been verified. */
export interface IdentityToken {
  readonly text: string;
  readonly kid: string;
  readonly alg: (typeof ALGORITHMS)[number];
  readonly typ: unknown;
  readonly claims: Record<string, unknown>;
}

/**
 * Reads a JWT in the compact form (RFC 7519), within bounds and without doubt: no member twice, no bytes that parsers read in
 * several ways.
 *
 * @throws RejectedToken
 */
export function readIdentityToken(text: string): IdentityToken {
  if (text.length > MAX_LENGTH) throw new RejectedToken('malformed', `longer than ${MAX_LENGTH} characters`);
  const parts = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/.exec(text);
  if (parts === null) throw new RejectedToken('malformed', 'not a JWT in the compact form');
  decode(parts[3]!, 'signature');
  const header = jsonObject(parts[1]!, 'header');
  const { alg, kid, typ } = header;
  if (!isAlgorithm(alg)) throw new RejectedToken('algorithm', 'its algorithm is not one of the accepted');
  const foreign = FOREIGN_KEYS.find((name) => Object.hasOwn(header, name));
  if (foreign !== undefined) throw new RejectedToken('malformed', `its header has ${foreign}`);
  if (typeof kid !== 'string' || kid === '') throw new RejectedToken('unknown_key', 'its header has no kid');
  return { text, kid, alg, typ, claims: jsonObject(parts[2]!, 'payload') };
}

function isAlgorithm(alg: unknown): alg is IdentityToken['alg'] {
  return (ALGORITHMS as readonly unknown[]).includes(alg);
}

function decode(part: string, what: string): Buffer {
  const bytes = Buffer.from(part, 'base64url');
  // Node skips what is no base64url, and bits that belong to no byte.
  if (bytes.toString('base64url') !== part)
    throw new RejectedToken('malformed', `its ${what} is not base64url`);
  return bytes;
}

function jsonObject(part: string, what: string): Record<string, unknown> {
  const bytes = decode(part, what);
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    throw new RejectedToken('malformed', `its ${what} is not JSON`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new RejectedToken('malformed', `its ${what} is not an object`);
  mustBeSmall(value, what);
  if (hasRepeatedMembers(bytes, value))
    throw new RejectedToken('malformed', `its ${what} has a member twice`);
  return value as Record<string, unknown>;
}

function mustBeSmall(value: object, what: string): void {
  let members = 0;
  const left: [value: unknown, depth: number][] = [[value, 1]];
  while (left.length > 0) {
    const [one, depth] = left.pop()!;
    if (typeof one !== 'object' || one === null) continue;
    const inner = Object.values(one);
    members += inner.length;
    if (members > MAX_CLAIMS || depth > MAX_DEPTH)
      throw new RejectedToken('malformed', `its ${what} has too many members`);
    for (const each of inner) left.push([each, depth + 1]);
  }
}
