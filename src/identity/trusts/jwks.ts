import { importJWK, type CryptoKey, type JWK } from 'jose';
import type { PublicKeys } from './trust.entity.js';

/** Keys of one issuer: real ones have 2 to 12. */
export const MAX_KEYS = 100;

/** Members of private keys (RFC 7518 6.2.2, 6.3.2 and 6.4.1). */
const PRIVATE = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

const SUPPORTED = ['RSA', 'EC', 'OKP'];

/** Reads a JWK set (RFC 7517 5). @returns null if it is none */
export function publicKeysOf(value: unknown): PublicKeys | null {
  if (typeof value !== 'object' || value === null) return null;
  const { keys } = value as { keys?: unknown };
  if (!Array.isArray(keys) || keys.length === 0 || keys.length > MAX_KEYS) return null;
  if (keys.some((key) => typeof key !== 'object' || key === null || Array.isArray(key))) return null;
  return { keys: keys as PublicKeys['keys'] };
}

/** What is wrong with a JWK set that somebody pasted; null: nothing. */
export function keysProblem(value: unknown): string | null {
  const set = publicKeysOf(value);
  if (set === null) return `must be a JWK set: {"keys": [...]}, with 1 to ${MAX_KEYS} public keys`;
  if (set.keys.some((key) => key.kty === 'oct' || PRIVATE.some((name) => Object.hasOwn(key, name))))
    return 'must contain public keys only; this one contains a secret, so replace that key at its issuer';
  return set.keys.some(({ kid, kty }) => typeof kid === 'string' && SUPPORTED.includes(kty!))
    ? null
    : 'must contain an RSA, EC or OKP key with a kid';
}

/** The keys of an issuer, imported when they are first used. */
export class KeySet {
  private readonly imported = new Map<string, Promise<CryptoKey | null>>();

  constructor(private readonly set: PublicKeys) {}

  /** @returns null if there is no such key for this algorithm */
  find(kid: string, alg: string): Promise<CryptoKey | null> {
    const id = `${alg} ${kid}`;
    let found = this.imported.get(id);
    // Only for keys that there are: `kid` is whatever a caller sends.
    if (found === undefined && this.set.keys.some((key) => key.kid === kid))
      this.imported.set(id, (found = this.import(kid, alg)));
    return found ?? Promise.resolve(null);
  }

  private async import(kid: string, alg: string): Promise<CryptoKey | null> {
    for (const { kid: id, kty, use, alg: only, ...key } of this.set.keys) {
      if (id !== kid || !SUPPORTED.includes(kty as string) || (use ?? 'sig') !== 'sig') continue;
      if (only !== undefined && only !== alg) continue;
      // Private members would make it a key that signs.
      const members = Object.entries(key).filter(([name]) => !PRIVATE.includes(name) && name !== 'key_ops');
      const jwk = { ...Object.fromEntries(members), kty } as JWK;
      try {
        return (await importJWK(jwk, alg)) as CryptoKey;
      } catch {
        // Of another type or curve than the algorithm has.
        continue;
      }
    }
    return null;
  }
}
