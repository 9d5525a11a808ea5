import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { type CryptoKey, type JWK, SignJWT } from 'jose';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { exchange, expectRejection, fromAnother, MANY_ADDRESSES } from './exchanges.js';
import { FakeIssuer } from './fake-issuer.js';

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const weak = generateKeyPairSync('rsa', { modulusLength: 1024 });
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' });
const p521 = generateKeyPairSync('ec', { namedCurve: 'P-521' });
const k256 = generateKeyPairSync('ec', { namedCurve: 'secp256k1' });
const ed25519 = generateKeyPairSync('ed25519');
const pairs = { rsa, weak, p256, p384, p521, k256, ed25519 };
const jwk = (key: KeyObject) => key.export({ format: 'jwk' }) as JWK;
const other = { rs512: { ...jwk(rsa.publicKey), alg: 'RS512' }, enc: { ...jwk(rsa.publicKey), use: 'enc' } };

let gateway: TestGateway;
let issuer: FakeIssuer;
let stranger: FakeIssuer;
beforeAll(async () => {
  issuer = await FakeIssuer.start();
  stranger = await FakeIssuer.start();
  gateway = await startTestGateway({ PROVIDER_URL: issuer.url, ...MANY_ADDRESSES });
  await gateway.admin('POST', '/keys', { team: 'default', name: 'ci', secret: false });
  issuer.keys = [
    issuer.publicJwk,
    ...Object.entries(pairs).map(([kid, { publicKey }]) => ({ ...jwk(publicKey), kid })),
    ...Object.entries(other).map(([kid, key]) => ({ ...key, kid })),
    // A secret that an issuer publishes by mistake.
    { kty: 'oct', k: Buffer.alloc(64, 1).toString('base64url'), kid: 'oct' },
  ];
  const trust = {
    name: 'job',
    key: 'default/ci',
    issuer: issuer.url,
    audience: 'gateway',
    claims: { sub: ['job'] },
  };
  await gateway.admin('POST', '/trusts', trust);
});
afterAll(async () => {
  await gateway.stop();
  await issuer.stop();
  await stranger.stop();
});

const rejects = (token: string, reason: string) => expectRejection(gateway, 'job', token, reason);
const accepts = async (token: string) =>
  expect((await exchange(gateway, 'job', token, {}, fromAnother())).status).toBe(200);

function signedBy(alg: string, kid: string, key: KeyObject | Uint8Array | CryptoKey): Promise<string> {
  return new SignJWT(issuer.claimsWith()).setProtectedHeader({ alg, kid }).sign(key);
}

/** A good RS256 signature below a header that says anything. */
const withHeader = (header: object) =>
  issuer.signTexts(JSON.stringify(header), JSON.stringify(issuer.claimsWith()));

describe('an algorithm', () => {
  it.each<[string, keyof typeof pairs]>([
    ['RS256', 'rsa'],
    ['RS384', 'rsa'],
    ['RS512', 'rsa'],
    ['PS256', 'rsa'],
    ['PS384', 'rsa'],
    ['PS512', 'rsa'],
    ['ES256', 'p256'],
    ['ES384', 'p384'],
    ['ES512', 'p521'],
    ['EdDSA', 'ed25519'],
    ['Ed25519', 'ed25519'],
  ])('%s is accepted', async (alg, kid) => accepts(await signedBy(alg, kid, pairs[kid].privateKey)));

  it('none is rejected, with and without a signature', async () => {
    for (const alg of ['none', 'None', '']) {
      const [header, payload, signature] = withHeader({ alg, kid: 'one' }).split('.') as [
        string,
        string,
        string,
      ];
      await rejects(`${header}.${payload}.${signature}`, 'algorithm');
      await rejects(`${header}.${payload}.AA`, 'algorithm');
      await rejects(`${header}.${payload}.`, 'malformed');
    }
  });

  it.each(['HS256', 'HS384', 'HS512'])('%s is rejected, with what is public as the secret', async (alg) => {
    const pem = rsa.publicKey.export({ type: 'spki', format: 'pem' });
    const der = rsa.publicKey.export({ type: 'spki', format: 'der' });
    for (const secret of [pem, der, JSON.stringify(jwk(rsa.publicKey)), jwk(rsa.publicKey).n!])
      await rejects(await signedBy(alg, 'rsa', Buffer.from(secret)), 'algorithm');
    await rejects(await signedBy(alg, 'oct', Buffer.alloc(64, 1)), 'algorithm');
  });

  it.each([
    [{ alg: 'rs256', kid: 'one' }],
    [{ alg: ['RS256'], kid: 'one' }],
    [{ alg: 'RS1', kid: 'one' }],
    [{ alg: 'ES256K', kid: 'k256' }],
    [{ kid: 'one' }],
  ])('that is not known is rejected: %j', async (header) => rejects(withHeader(header), 'algorithm'));

  it('has to be that of the key', async () => {
    await rejects(await signedBy('RS256', 'rs512', rsa.privateKey), 'unknown_key');
    await accepts(await signedBy('RS512', 'rs512', rsa.privateKey));
    await rejects(await signedBy('RS256', 'enc', rsa.privateKey), 'unknown_key');
    await rejects(await signedBy('RS256', 'p256', rsa.privateKey), 'unknown_key');
    await rejects(await signedBy('ES256', 'p384', p256.privateKey), 'unknown_key');
    await rejects(await signedBy('ES256', 'k256', p256.privateKey), 'unknown_key');
  });
});

describe('a token is rejected', () => {
  it('with a key of less than 2048 bits', async () => {
    const signed = [{ alg: 'RS256', kid: 'weak' }, issuer.claimsWith()]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    const signature = sign('sha256', Buffer.from(signed), weak.privateKey).toString('base64url');
    await rejects(`${signed}.${signature}`, 'signature');
  });

  it('with a signature that is not that of its key', async () => {
    await rejects(await issuer.sign({}, { key: stranger.privateKey }), 'signature');
    const [header, , signature] = (await issuer.sign()).split('.') as [string, string, string];
    const payload = Buffer.from(JSON.stringify(issuer.claimsWith({ more: 1 }))).toString('base64url');
    await rejects(`${header}.${payload}.${signature}`, 'signature');
  });

  it('without a kid of the issuer, although one of its keys has signed it', async () => {
    for (const kid of [undefined, null, '', 1, ['one'], 'One', 'unknown', '__proto__'])
      await rejects(withHeader({ alg: 'RS256', kid }), 'unknown_key');
    await accepts(withHeader({ alg: 'RS256', kid: 'one' }));
  });

  it('that names its key itself, and nothing is fetched', async () => {
    for (const named of [
      { jwk: stranger.publicJwk },
      { jku: `${stranger.url}/keys` },
      { x5u: `${stranger.url}/keys` },
      { x5c: ['AA=='] },
      { crit: ['exp'] },
      { crit: ['b64'], b64: true },
      { zip: 'DEF' },
    ]) {
      const header = { alg: 'RS256', kid: 'one', ...named };
      await rejects(withHeader(header), 'malformed');
      const texts = [JSON.stringify(header), JSON.stringify(issuer.claimsWith())] as const;
      await rejects(stranger.signTexts(...texts), 'malformed');
    }
    expect(stranger.asked).toEqual([]);
  });
});
