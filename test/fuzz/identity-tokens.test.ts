import fc from 'fast-check';
import { compactVerify } from 'jose';
import { checkClaims, type Terms } from '../../src/identity/trusts/check-claims.js';
import { ALGORITHMS, readIdentityToken, RejectedToken } from '../../src/identity/trusts/identity-token.js';
import { KeySet } from '../../src/identity/trusts/jwks.js';
import { FakeIssuer } from '../identity/fake-issuer.js';
import { check } from '../support/property.js';

let issuer: FakeIssuer;
let token: string;
let keys: KeySet;
let terms: Terms;
beforeAll(async () => {
  issuer = await FakeIssuer.start();
  token = await issuer.sign({ ref: 'refs/heads/main', repository_id: '1' });
  keys = new KeySet({ keys: [issuer.publicJwk] });
  terms = {
    preset: 'oidc',
    issuer: issuer.url,
    audience: 'gateway',
    claims: { sub: ['job'] },
    cidrs: null,
    longestJwtMinutes: 120,
  };
});
afterAll(() => issuer.stop());

/** What an exchange does with a token before it asks Postgres. */
async function accept(text: string): Promise<boolean> {
  try {
    const read = readIdentityToken(text);
    const key = await keys.find(read.kid, read.alg);
    if (key === null) return false;
    await compactVerify(read.text, key, { algorithms: [...ALGORITHMS] }).catch(() => {
      throw new RejectedToken('signature', 'wrong');
    });
    checkClaims(read, terms, { address: null, oidcClientId: undefined });
    return true;
  } catch (error) {
    // Anything else would be a fault of its own.
    if (error instanceof RejectedToken) return false;
    throw error;
  }
}

/** Replaces, inserts, removes or repeats a part of the token, or exchanges the parts of two. */
const mutation = fc.oneof(
  fc
    .tuple(fc.nat(), fc.string({ unit: 'binary', minLength: 1, maxLength: 4 }))
    .map(([at, text]) => (of: string) => {
      const place = at % of.length;
      return of.slice(0, place) + text + of.slice(place + text.length);
    }),
  fc
    .tuple(fc.nat(), fc.constantFrom('A', '.', '=', '-', '_', ' ', '\0'))
    .map(([at, text]) => (of: string) => {
      const place = at % (of.length + 1);
      return of.slice(0, place) + text + of.slice(place);
    }),
  fc.tuple(fc.nat(), fc.nat({ max: 40 })).map(([at, count]) => (of: string) => {
    const place = at % of.length;
    return of.slice(0, place) + of.slice(place + count + 1);
  }),
  fc.json().map((json) => (of: string) => {
    const [header, , signature] = of.split('.');
    return `${header}.${Buffer.from(json).toString('base64url')}.${signature}`;
  }),
  fc.json().map((json) => (of: string) => {
    const [, payload, signature] = of.split('.');
    return `${Buffer.from(json).toString('base64url')}.${payload}.${signature}`;
  }),
  fc
    .record(
      {
        alg: fc.oneof(fc.constantFrom('none', 'HS256', 'RS256', 'PS256', 'ES256', 'EdDSA'), fc.string()),
        kid: fc.oneof(fc.constant('one'), fc.string()),
        crit: fc.array(fc.string()),
        b64: fc.boolean(),
        jwk: fc.object(),
      },
      { requiredKeys: ['alg', 'kid'] },
    )
    .map((header) => (of: string) => {
      const [, payload, signature] = of.split('.');
      return `${Buffer.from(JSON.stringify(header)).toString('base64url')}.${payload}.${signature}`;
    }),
);

it('a token with other unused bits at the end of its signature is not accepted', async () => {
  // Of an RSA signature of 256 bytes, the last character has 4 bits that belong to no byte.
  const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const other = token.slice(0, -1) + digits[digits.indexOf(token.at(-1)!) + 1]!;
  const bytes = (text: string) => Buffer.from(text.split('.')[2]!, 'base64url');
  expect(bytes(other)).toEqual(bytes(token));
  expect(await accept(other)).toBe(false);
});

it('no mutated token is accepted', async () => {
  expect(await accept(token)).toBe(true);
  const property = fc.asyncProperty(mutation, async (mutate) => {
    const text = mutate(token);
    fc.pre(text !== token);
    expect(await accept(text)).toBe(false);
  });
  await check(property, { numRuns: 100_000 });
}, 600_000);

it('a key is found by its exact kid and algorithm only', async () => {
  expect(await keys.find('one', 'RS256')).not.toBeNull();
  for (const [kid, alg] of [
    ['one', 'PS256'],
    ['one', 'ES256'],
    ['One', 'RS256'],
    ['', 'RS256'],
  ] as const)
    expect(await keys.find(kid, alg)).toBeNull();
});
