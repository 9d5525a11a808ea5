import fc from 'fast-check';
import { readCredential } from '../../src/auth/credential.js';
import { isWellFormedKey, generateKey } from '../../src/keys/key-secret.js';
import { containsKeyFormat } from '../../src/platform/api-key.js';
import { GatewayError } from '../../src/errors/gateway-error.js';
import { never } from '../support/never.js';
import { check } from '../support/property.js';

const NAMES = [
  'authorization',
  'x-api-key',
  'api-key',
  'x-goog-api-key',
  'x-gateway-key',
  'proxy-authorization',
  'x-other',
  'apixxkey',
];
const value = fc.constantFrom(
  'Bearer a',
  'bearer b',
  'BEARER c',
  'Bearer  a',
  'Bearer',
  'Bearer a b',
  'Basic a',
  'a',
  'b',
  '',
);
const name = fc.constantFrom(...NAMES, ...NAMES.map((text) => text.toUpperCase()));
const headers = fc.array(fc.tuple(name, value), { maxLength: 5 });

function read(raw: [string, string][]): string | null | GatewayError {
  try {
    return readCredential(raw.flat());
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
}

never('takes one credential from one place, or none, or rejects', () => {
  check(
    fc.property(headers, (raw) => {
      const of = (key: string) =>
        raw.filter(([header]) => header.toLowerCase() === key).map(([, text]) => text);
      const bearers = of('authorization');
      const others = ['x-api-key', 'api-key', 'x-goog-api-key'].map(of);
      const result = read(raw);
      const own = of('x-gateway-key');
      if (own.length > 1) expect(result).toBeInstanceOf(GatewayError);
      else if (own.length === 1) expect(result).toBe(own[0] || null);
      else if (bearers.length > 1 || others.some((values) => values.length > 1)) {
        expect(result).toBeInstanceOf(GatewayError);
      } else if (bearers.length === 1) {
        // Authorization decides alone: no fallback behind a malformed one.
        expect(result).toBe(/^bearer \S+$/i.test(bearers[0]!) ? bearers[0]!.slice(7) : null);
      } else if (new Set(others.flat()).size > 1) expect(result).toBeInstanceOf(GatewayError);
      else expect(result).toBe(others.flat()[0] || null);
    }),
    { numRuns: 10_000 },
  );
});

never('accepts its own keys, and none with a letter changed, lost or added', () => {
  const letter = fc.constantFrom(...'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_- \n');
  check(
    fc.property(fc.nat(41), letter, (at, other) => {
      const key = generateKey();
      expect(isWellFormedKey(key)).toBe(true);
      const changed = key.slice(0, at) + other + key.slice(at + 1);
      expect(isWellFormedKey(changed)).toBe(changed === key);
      expect(isWellFormedKey(key.slice(0, at) + key.slice(at + 1))).toBe(false);
      expect(isWellFormedKey(key.slice(0, at) + other + key.slice(at))).toBe(false);
      expect(isWellFormedKey(`${key}\n`)).toBe(false);
    }),
    { numRuns: 2_000 },
  );
});

never('finds a key wherever it stands in a text', () => {
  check(
    fc.property(fc.string(), fc.string(), (before, after) => {
      expect(containsKeyFormat(before + generateKey() + after)).toBe(true);
    }),
  );
});
