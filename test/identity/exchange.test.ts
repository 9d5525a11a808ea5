import { generateKeyPairSync, sign } from 'node:crypto';
import { SignJWT } from 'jose';
import { TrustFailures } from '../../src/identity/trusts/trust-failures.service.js';
import { soon } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { exchange, exchanged, postForm, statusWith } from './exchanges.js';
import { FakeIssuer } from './fake-issuer.js';

const REJECTED = JSON.stringify({
  error: 'invalid_request',
  error_description: 'The token was not accepted.',
});
const nowS = () => Math.floor(Date.now() / 1000);

let provider: RawProvider;
let gateway: TestGateway;
let issuer: FakeIssuer;
let stranger: FakeIssuer;
beforeAll(async () => {
  provider = await RawProvider.start(async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', [], 'ok'));
  });
  issuer = await FakeIssuer.start();
  stranger = await FakeIssuer.start();
  gateway = await startTestGateway({
    PROVIDER_URL: provider.url,
    GATEWAY_URL: 'https://gateway.example.com',
  });
  await gateway.admin('POST', '/keys', { team: 'default', name: 'ci', secret: false });
  await createTrust('job', { sub: ['job'] });
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
  await issuer.stop();
  await stranger.stop();
});

async function createTrust(name: string, claims: object, more: object = {}): Promise<void> {
  const body = { name, key: 'default/ci', issuer: issuer.url, audience: 'gateway', claims, ...more };
  await gateway.admin('POST', '/trusts', body);
}

const rejects = async (token: string, trust = 'job') => {
  const { status, text } = await exchange(gateway, trust, token);
  expect({ status, text }).toEqual({ status: 400, text: REJECTED });
};

interface Failure {
  reason: string;
  claims: Record<string, unknown>;
}

async function failuresOf(trust: string): Promise<Failure[]> {
  await gateway.gateway.app.get(TrustFailures).write();
  return (await gateway.admin<{ data: Failure[] }>('GET', `/trusts/${trust}/failures`)).data;
}

describe('an accepted token', () => {
  it('is exchanged for a token of the key, which works and ends alone', async () => {
    const issued = await exchange(gateway, 'job', await issuer.sign());
    expect(issued).toMatchObject({ status: 200, expiresIn: 3600 });
    expect(JSON.parse(issued.text)).toEqual({
      access_token: expect.stringMatching(/^ptn_[0-9A-Za-z]{38}$/) as string,
      issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      token_type: 'Bearer',
      expires_in: 3600,
    });
    expect(issued.headers.get('cache-control')).toBe('no-store');
    const other = await exchange(gateway, 'job', await issuer.sign());
    expect(await statusWith(gateway, issued.token!)).toBe(200);
    expect((await postForm(`${gateway.url}/oauth/revoke`, { token: issued.token! })).status).toBe(200);
    await soon(async () => (await statusWith(gateway, issued.token!)) === 401);
    expect(await statusWith(gateway, other.token!)).toBe(200);
  });

  it('is accepted again, because a job may start several processes', async () => {
    const token = await issuer.sign();
    expect((await exchange(gateway, 'job', token)).status).toBe(200);
    expect((await exchange(gateway, 'job', token)).status).toBe(200);
  });

  it('may have its one audience as text or as a list', async () => {
    expect((await exchange(gateway, 'job', await issuer.sign({ aud: ['gateway'] }))).status).toBe(200);
  });

  it('is accepted at /v1/oauth/token, also below /p/default, and a revocation ends no static key', async () => {
    for (const base of ['', '/p/default']) {
      const response = await fetch(`${gateway.url}${base}/v1/oauth/token`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
          assertion: await issuer.sign(),
          federation_rule_id: 'job',
          organization_id: '00000000-0000-0000-0000-000000000000',
        }),
      });
      expect(await exchanged(response)).toMatchObject({ status: 200, expiresIn: 3600 });
    }
    expect((await postForm(`${gateway.url}/oauth/revoke`, { token: gateway.key })).status).toBe(200);
    expect(await statusWith(gateway, gateway.key)).toBe(200);
  });

  it('of a key that has been sent along is a call, as before', async () => {
    const response = await fetch(`${gateway.url}/v1/oauth/token`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: '{}',
    });
    // The endpoint is not one for inference.
    expect(response.status).toBe(403);
    await response.arrayBuffer();
  });
});

it('is accepted for a trust that is made once the database was restored, which has counted fewer changes', async () => {
  await gateway.database.query(`UPDATE change_counter SET value = -100 WHERE name = 'trusts'`);
  await createTrust('restored', { sub: ['job'] });
  expect((await exchange(gateway, 'restored', await issuer.sign())).status).toBe(200);
});

describe('a token is refused', () => {
  // Times are those of the test, which may run long after its file was read.
  const cases: [string, () => Record<string, unknown>][] = [
    ['without an audience', () => ({ aud: undefined })],
    ['for another audience', () => ({ aud: 'https://other.example.com' })],
    ['for two audiences', () => ({ aud: ['gateway', 'https://other.example.com'] })],
    ['that has expired', () => ({ iat: nowS() - 400, exp: nowS() - 100 })],
    ['that is not yet valid', () => ({ nbf: nowS() + 100 })],
    ['from the future', () => ({ iat: nowS() + 100 })],
    ['without iat', () => ({ iat: undefined })],
    ['without exp', () => ({ exp: undefined })],
    ['that lives too long', () => ({ exp: nowS() + 121 * 60 })],
    ['without sub', () => ({ sub: undefined })],
    ['whose sub is no text', () => ({ sub: 7 })],
    ['of another job', () => ({ sub: 'another' })],
    ['for a logout', () => ({ events: { 'http://schemas.openid.net/event/backchannel-logout': {} } })],
  ];
  it.each(cases)('%s', async (_, claims) => rejects(await issuer.sign(claims())));

  it('with an issuer that differs by a slash, its case or its port', async () => {
    for (const iss of [`${issuer.url}/`, issuer.url.replace('http', 'HTTP'), `${issuer.url}0`])
      await rejects(await issuer.sign({ iss }));
  });

  it('with a logout type', async () => {
    await rejects(await issuer.sign({}, { header: { typ: 'logout+jwt' } }));
  });

  it('without a signature, or signed with the public key as a secret', async () => {
    const [header, payload] = (await issuer.sign()).split('.') as [string, string];
    const none = Buffer.from('{"alg":"none","kid":"one"}').toString('base64url');
    await rejects(`${none}.${payload}.`);
    await rejects(`${none}.${payload}.AA`);
    const secret = Buffer.from(JSON.stringify(issuer.publicJwk));
    const symmetric = new SignJWT({ sub: 'job' }).setProtectedHeader({ alg: 'HS256', kid: 'one' });
    await rejects(await symmetric.sign(secret));
    await rejects(`${header}.${payload}.${Buffer.alloc(256).toString('base64url')}`);
  });

  it('with the key of another issuer, or one that it names itself, and nothing is fetched', async () => {
    await rejects(await issuer.sign({}, { key: stranger.privateKey }));
    for (const header of [
      { kid: undefined },
      { jku: stranger.url },
      { x5u: stranger.url },
      { jwk: stranger.publicJwk },
    ])
      await rejects(await issuer.sign({}, { key: stranger.privateKey, header }));
    expect(stranger.asked).toEqual([]);
  });

  it('with a key of less than 2048 bits', async () => {
    const weak = generateKeyPairSync('rsa', { modulusLength: 1024 });
    issuer.keys = [issuer.publicJwk, { ...weak.publicKey.export({ format: 'jwk' }), kid: 'weak' }];
    const [, payload] = (await issuer.sign()).split('.');
    const head = Buffer.from('{"alg":"RS256","kid":"weak"}').toString('base64url');
    const signature = sign('sha256', Buffer.from(`${head}.${payload}`), weak.privateKey);
    // The keys are read for the new trust, so that the weak one is known.
    await createTrust('stored', { sub: ['job'] }, { jwks: { keys: issuer.keys } });
    await rejects(`${head}.${payload}.${signature.toString('base64url')}`, 'stored');
    expect((await exchange(gateway, 'stored', await issuer.sign())).status).toBe(200);
  });

  it('with members twice, too many claims, deep claims, or 17 KiB', async () => {
    const signature = 'AA';
    const header = Buffer.from('{"alg":"RS256","kid":"one"}').toString('base64url');
    const part = (text: string) => Buffer.from(text).toString('base64url');
    await rejects(`${header}.${part('{"sub":"job","sub":"job"}')}.${signature}`);
    const many = JSON.stringify(Object.fromEntries(Array.from({ length: 600 }, (_, i) => [`c${i}`, 1])));
    await rejects(`${header}.${part(many)}.${signature}`);
    await rejects(`${header}.${part(`{"a":${'['.repeat(1000)}${']'.repeat(1000)}}`)}.${signature}`);
    await rejects(await issuer.sign({ more: 'x'.repeat(17_000) }));
  });

  it('that Postern issued itself', async () => {
    await rejects(gateway.key);
    await rejects((await exchange(gateway, 'job', await issuer.sign())).token!);
  });

  it('with the same bytes for a trust that does not exist, is disabled, or a wrong claim', async () => {
    await createTrust('off', { sub: ['job'] }, { enabled: false });
    await rejects(await issuer.sign(), 'nobody');
    await rejects(await issuer.sign(), 'off');
    await rejects(await issuer.sign({ sub: 'wrong' }));
  });

  it('with the audience of ID tokens of the console, also if the trust is older than OIDC_CLIENT_ID', async () => {
    const warn = jest.spyOn(console, 'warn').mockImplementation(() => {});
    const replica = await startTestGateway(
      {
        PUBLIC_URL: 'https://gateway.example.com',
        OIDC_ISSUER: 'https://login.example.com',
        OIDC_CLIENT_ID: 'gateway',
        OIDC_CLIENT_SECRET: 'secret-of-the-console',
        OIDC_ADMINS: 'admins',
      },
      gateway.database,
    );
    try {
      const token = await issuer.sign();
      expect((await exchange(gateway, 'job', token)).status).toBe(200);
      expect((await exchange(replica, 'job', token)).status).toBe(400);
    } finally {
      warn.mockRestore();
      await replica.stop();
    }
  });

  it('from an address outside the networks of the trust', async () => {
    await createTrust('near', { sub: ['job'] }, { cidrs: ['127.0.0.0/8'] });
    await createTrust('far', { sub: ['job'] }, { cidrs: ['10.9.0.0/16'] });
    expect((await exchange(gateway, 'near', await issuer.sign())).status).toBe(200);
    await rejects(await issuer.sign(), 'far');
  });

  it('and the reason is kept with the claims that are named, if the issuer signed it', async () => {
    await createTrust('kept', { sub: ['job'], '/kubernetes.io/namespace': ['prod'] });
    const private_ = { email: 'jane@example.com' };
    await rejects(await issuer.sign({ 'kubernetes.io': { namespace: 'test' }, ...private_ }), 'kept');
    await rejects(await issuer.sign({ sub: 'job' }, { key: stranger.privateKey }), 'kept');
    expect(await failuresOf('kept')).toMatchObject([
      {
        reason: 'the claim /kubernetes.io/namespace does not have an accepted value',
        claims: { sub: 'job', '/kubernetes.io/namespace': 'test' },
      },
    ]);
    expect(JSON.stringify(await failuresOf('kept'))).not.toContain('jane');
  });
});

describe('a request for a token', () => {
  const JWT = 'urn:ietf:params:oauth:token-type:jwt';
  const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';

  it('names the parameter that is missing or given twice', async () => {
    const at = `${gateway.url}/oauth/token`;
    const missing = await postForm(at, { grant_type: GRANT, subject_token_type: JWT, trust: 'job' });
    expect(missing).toMatchObject({ status: 400, text: expect.stringContaining('subject_token') as string });
    const twice = await postForm(at, [
      ['grant_type', GRANT],
      ['subject_token_type', JWT],
      ['trust', 'job'],
      ['trust', 'other'],
      ['subject_token', 'x'],
    ]);
    expect(twice).toMatchObject({
      status: 400,
      text: expect.stringContaining('trust is given twice') as string,
    });
    const actor = await exchange(gateway, 'job', await issuer.sign(), { actor_token: 'x' });
    expect(actor).toMatchObject({ status: 400, text: expect.stringContaining('actor_token') as string });
    const unknown = await postForm(at, { grant_type: 'password' });
    expect(unknown).toMatchObject({
      status: 400,
      text: expect.stringContaining('unsupported_grant_type') as string,
    });
  });

  it('is limited in its size', async () => {
    const response = await postForm(`${gateway.url}/oauth/token`, { grant_type: 'x'.repeat(33_000) });
    expect(response.status).toBe(413);
  });

  it('below an unknown provider is 404', async () => {
    const response = await postForm(`${gateway.url}/p/nobody/oauth/token`, { grant_type: GRANT });
    expect(response.status).toBe(404);
  });
});

it('names the configured address in its metadata, whatever the request says', async () => {
  const at = '/.well-known/oauth-authorization-server';
  const paths = [at, `${at}/p/default`, `/p/default${at}`];
  for (const path of paths) {
    const response = await fetch(`${gateway.url}${path}`, {
      headers: { 'x-forwarded-host': 'evil.example' },
    });
    expect(response.status).toBe(200);
    const document = (await response.json()) as { issuer: string; token_endpoint: string };
    const base = path === at ? '' : '/p/default';
    expect(document).toMatchObject({
      issuer: `https://gateway.example.com${base}`,
      token_endpoint: `https://gateway.example.com${base}/oauth/token`,
      response_types_supported: [],
      grant_types_supported: ['urn:ietf:params:oauth:grant-type:token-exchange'],
    });
  }
  expect((await fetch(`${gateway.url}/p/nobody${at}`)).status).toBe(404);
});
