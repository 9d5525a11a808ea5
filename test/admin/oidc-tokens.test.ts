import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { send } from './browser.js';

const SECRET = 'a-client-secret-of-this-test';
const KID = 'key-1';

const keys = () => generateKeyPairSync('rsa', { modulusLength: 2_048 });
const own = keys();
const foreign = keys();

type Claims = Record<string, unknown>;
/** Makes an ID token of the claims that are right. */
type Make = (claims: Claims) => string;

let issuer: Server;
let issuerUrl: string;
let postern: TestGateway;
/** What the provider says next. */
let make: Make;
let userInfo: Claims;

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

function signed(claims: Claims, key: KeyObject = own.privateKey): string {
  const text = `${encode({ alg: 'RS256', typ: 'JWT', kid: KID })}.${encode(claims)}`;
  return `${text}.${sign('sha256', Buffer.from(text), key).toString('base64url')}`;
}

/** Signed with what the client and the provider share, as if that were the key of an RS256 token. */
function keyed(claims: Claims): string {
  const text = `${encode({ alg: 'HS256', typ: 'JWT', kid: KID })}.${encode(claims)}`;
  return `${text}.${createHmac('sha256', SECRET).update(text).digest('base64url')}`;
}

beforeAll(async () => {
  let nonce = '';
  issuer = createServer((req, res) => {
    const { pathname } = new URL(req.url!, issuerUrl);
    const now = Math.floor(Date.now() / 1_000);
    const respond = (body: object) =>
      res.setHeader('content-type', 'application/json').end(JSON.stringify(body));
    if (pathname === '/.well-known/openid-configuration') {
      return respond({
        issuer: issuerUrl,
        authorization_endpoint: `${issuerUrl}/authorize`,
        token_endpoint: `${issuerUrl}/token`,
        userinfo_endpoint: `${issuerUrl}/userinfo`,
        jwks_uri: `${issuerUrl}/jwks`,
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['RS256'],
      });
    }
    if (pathname === '/jwks')
      return respond({
        keys: [{ ...own.publicKey.export({ format: 'jwk' }), kid: KID, alg: 'RS256', use: 'sig' }],
      });
    if (pathname === '/userinfo') return respond(userInfo);
    // Not a provider's: the test says which nonce belongs to the code.
    if (pathname === '/nonce') {
      nonce = new URL(req.url!, issuerUrl).searchParams.get('nonce')!;
      return respond({});
    }
    const claims = {
      iss: issuerUrl,
      aud: 'postern',
      sub: 'ada',
      iat: now,
      exp: now + 300,
      nonce,
      groups: ['admins'],
    };
    respond({ access_token: 'at', token_type: 'Bearer', expires_in: 300, id_token: make(claims) });
  });
  issuer.listen(0, '127.0.0.1');
  await once(issuer, 'listening');
  issuerUrl = `http://127.0.0.1:${(issuer.address() as AddressInfo).port}`;
  postern = await startTestGateway({
    PUBLIC_URL: 'http://127.0.0.1:8080',
    OIDC_ISSUER: issuerUrl,
    OIDC_CLIENT_ID: 'postern',
    OIDC_CLIENT_SECRET: SECRET,
    OIDC_ADMINS: 'admins',
  });
});
afterAll(async () => {
  await postern.stop();
  issuer.closeAllConnections();
  await new Promise((closed) => issuer.close(closed));
});

/** Signs in with what the provider says. @returns the status, and whether a session began */
async function signIn(): Promise<[number, boolean]> {
  const start = await send(postern, 'GET /admin/v1/oidc/start');
  const cookie = start.header('set-cookie')!.split(';')[0]!;
  const { searchParams } = new URL(start.header('location')!);
  await fetch(`${issuerUrl}/nonce?nonce=${searchParams.get('nonce')!}`);
  const target = `/admin/v1/oidc/callback?code=c&state=${searchParams.get('state')!}`;
  const answer = await send(postern, `GET ${target}`, [`Cookie: ${cookie}`]);
  const cookies = answer.headers.filter(([name]) => name.toLowerCase() === 'set-cookie');
  return [answer.status, cookies.some(([, value]) => value.startsWith('postern_session='))];
}

const withoutGroups = ({ groups: _, ...claims }: Claims) => claims;

it('an ID token of the provider for this client begins a session', async () => {
  make = signed;
  expect(await signIn()).toEqual([200, true]);
});

it('groups come from the user info too, of the same user', async () => {
  make = (claims) => signed(withoutGroups(claims));
  userInfo = { sub: 'ada', groups: ['admins'] };
  expect(await signIn()).toEqual([200, true]);
  userInfo = { sub: 'eve', groups: ['admins'] };
  expect(await signIn()).toEqual([400, false]);
});

it.each<[string, Make]>([
  ['for another client', (claims) => signed({ ...claims, aud: 'other' })],
  [
    'for several clients, made for another',
    (claims) => signed({ ...claims, aud: ['postern', 'other'], azp: 'other' }),
  ],
  ['without an audience', ({ aud: _, ...claims }) => signed(claims)],
  ['of another provider', (claims) => signed({ ...claims, iss: 'https://login.example' })],
  ['that has expired', (claims) => signed({ ...claims, iat: 1_000_000_000, exp: 1_000_000_300 })],
  ['that never expires', ({ exp: _, ...claims }) => signed(claims)],
  ['without a user', ({ sub: _, ...claims }) => signed(claims)],
  ['of another sign-in', (claims) => signed({ ...claims, nonce: 'another' })],
  ['without a nonce', ({ nonce: _, ...claims }) => signed(claims)],
  ['signed by another', (claims) => signed(claims, foreign.privateKey)],
  ['signed with the secret of the client', keyed],
  [
    'that was changed',
    (claims) => signed(claims).replace(/\.[^.]+\./, `.${encode({ ...claims, sub: 'eve' })}.`),
  ],
  ['that is not signed', (claims) => `${encode({ alg: 'none' })}.${encode(claims)}.`],
  ['that is none', () => 'x'],
])('an ID token %s begins no session', async (_, made) => {
  make = made;
  expect(await signIn()).toEqual([400, false]);
});
