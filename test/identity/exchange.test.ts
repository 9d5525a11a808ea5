import { TrustDirectory } from '../../src/identity/trusts/trust-directory.service.js';
import { TrustFailures } from '../../src/identity/trusts/trust-failures.service.js';
import { send } from '../admin/browser.js';
import { soon } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import {
  exchange,
  exchanged,
  expectRejection,
  fromAnother,
  MANY_ADDRESSES,
  postForm,
  REJECTED,
  statusWith,
} from './exchanges.js';
import { FakeIssuer } from './fake-issuer.js';

const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const nowS = () => Math.floor(Date.now() / 1000);

let provider: RawProvider;
let gateway: TestGateway;
let issuer: FakeIssuer;
let stranger: FakeIssuer;
afterEach(() => jest.restoreAllMocks());
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
    ...MANY_ADDRESSES,
  });
  await gateway.admin('POST', '/keys', { team: 'default', name: 'ci', secret: false });
  await createTrust('job', { sub: ['job'] });
  await createTrust('repository', { repository_id: ['7'] }, { preset: 'github', any_ref: true });
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

const rejects = (token: string, reason: string, trust = 'job') =>
  expectRejection(gateway, trust, token, reason);

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

  it.each([
    ['one audience in a list', () => ({ aud: ['gateway'] })],
    ['an end up to 30 seconds ago', () => ({ iat: nowS() - 100, exp: nowS() - 10 })],
    ['a beginning up to 30 seconds ahead', () => ({ iat: nowS() + 20, nbf: nowS() + 20 })],
    ['the longest lifetime', () => ({ exp: nowS() + 119 * 60 })],
  ])('may have %s', async (_, claims) => {
    expect((await exchange(gateway, 'job', await issuer.sign(claims()))).status).toBe(200);
  });

  it('is accepted at /v1/oauth/token, also below /p/default, and a revocation ends no static key', async () => {
    for (const base of ['', '/p/default']) {
      const response = await fetch(`${gateway.url}${base}/v1/oauth/token`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          grant_type: JWT_BEARER,
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

describe('a token is rejected', () => {
  // Times are those of the test, which may run long after its file was read.
  const cases: [string, string, () => Record<string, unknown>][] = [
    ['audience', 'without an audience', () => ({ aud: undefined })],
    ['audience', 'for another audience', () => ({ aud: 'https://other.example.com' })],
    ['audience', 'for two audiences', () => ({ aud: ['gateway', 'https://other.example.com'] })],
    ['audience', 'for two audiences, in the other order', () => ({ aud: ['https://other', 'gateway'] })],
    ['audience', 'for one audience twice', () => ({ aud: ['gateway', 'gateway'] })],
    ['audience', 'for no audience', () => ({ aud: [] })],
    ['audience', 'for a list of audiences in a list', () => ({ aud: [['gateway']] })],
    ['expired', 'that has expired', () => ({ iat: nowS() - 400, exp: nowS() - 35 })],
    ['not_yet_valid', 'that is not yet valid', () => ({ nbf: nowS() + 75 })],
    ['not_yet_valid', 'from the future', () => ({ iat: nowS() + 75 })],
    ['not_yet_valid', 'from the future, although it is valid', () => ({ iat: nowS() + 75, nbf: nowS() })],
    ['lifetime', 'without iat', () => ({ iat: undefined })],
    ['lifetime', 'without exp', () => ({ exp: undefined })],
    ['lifetime', 'whose exp is text', () => ({ exp: String(nowS() + 300) })],
    ['lifetime', 'whose nbf is null', () => ({ nbf: null })],
    ['lifetime', 'that ends before it begins', () => ({ iat: nowS(), exp: nowS() })],
    ['lifetime', 'that lives too long', () => ({ exp: nowS() + 121 * 60 })],
    ['claim', 'of another job', () => ({ sub: 'another' })],
    [
      'type',
      'for a logout',
      () => ({ events: { 'http://schemas.openid.net/event/backchannel-logout': {} } }),
    ],
  ];
  it.each(cases)('(%s) %s', async (reason, _, claims) => rejects(await issuer.sign(claims()), reason));

  it.each([undefined, 7, null, '', ['job']])(
    'if its sub is %j, also by a trust that does not name it',
    async (sub) => {
      const claims = { repository_id: '7', event_name: 'push' };
      await rejects(await issuer.sign({ ...claims, sub }), 'subject', 'repository');
      expect((await exchange(gateway, 'repository', await issuer.sign(claims))).status).toBe(200);
    },
  );

  it('with an issuer that differs by a slash, its case or its port', async () => {
    for (const iss of [`${issuer.url}/`, issuer.url.replace('http', 'HTTP'), `${issuer.url}0`])
      await rejects(await issuer.sign({ iss }), 'issuer');
  });

  it('with a logout type', async () => {
    for (const typ of ['logout+jwt', 'application/LOGOUT+JWT'])
      await rejects(await issuer.sign({}, { header: { typ } }), 'type');
  });

  it('by the clock of Postgres, not that of the process', async () => {
    const [valid, expired] = [
      await issuer.sign(),
      await issuer.sign({ iat: nowS() - 400, exp: nowS() - 35 }),
    ];
    const { now } = Date;
    // Behind: IDs of this process that a clock ahead had given would stay ahead of those of others.
    jest.spyOn(Date, 'now').mockImplementation(() => now() - 3_600_000);
    expect((await exchange(gateway, 'job', valid)).status).toBe(200);
    expect((await exchange(gateway, 'job', expired)).status).toBe(400);
  });

  const header = JSON.stringify({ alg: 'RS256', kid: 'one' });
  const payload = (more: string) => `${JSON.stringify(issuer.claimsWith()).slice(0, -1)}${more}}`;
  it.each([
    ['a member twice', ',"sub":"job"'],
    ['a member twice but for its case', ',"Sub":"job"'],
    ['a member twice inside of another', ',"a":[{"b":1,"b":1}]'],
    ['too many claims', `,${Array.from({ length: 600 }, (_, i) => `"c${i}":1`).join()}`],
    ['deep claims', `,"a":${'['.repeat(30)}${']'.repeat(30)}`],
  ])('with %s, although it is signed', async (_, more) => {
    await rejects(issuer.signTexts(header, payload(more)), 'malformed');
  });

  it('with a header that has a member twice, or one of 17 KiB', async () => {
    await rejects(issuer.signTexts('{"alg":"RS256","kid":"one","kid":"one"}', payload('')), 'malformed');
    const long = await exchange(gateway, 'job', await issuer.sign({ more: 'x'.repeat(12_500) }));
    expect([long.status, long.text]).toEqual([400, REJECTED]);
    // What is not wrong with them.
    const same = issuer.signTexts(header, payload(`,"a":${'['.repeat(5)}${']'.repeat(5)}`));
    expect((await exchange(gateway, 'job', same)).status).toBe(200);
    expect((await exchange(gateway, 'job', await issuer.sign({ more: 'x'.repeat(10_000) }))).status).toBe(
      200,
    );
  });

  it('that Postern issued itself', async () => {
    await rejects(gateway.key, 'malformed');
    await rejects((await exchange(gateway, 'job', await issuer.sign())).token!, 'malformed');
  });

  it('with the same bytes for every reason, at both endpoints', async () => {
    await createTrust('off', { sub: ['job'] }, { enabled: false });
    await createTrust('far', { sub: ['job'] }, { cidrs: ['203.0.113.0/24'] });
    const tokens: [trust: string, token: string][] = [
      ['nobody', await issuer.sign()],
      ['off', await issuer.sign()],
      ['off', 'no token'],
      ['far', await issuer.sign()],
      ['job', await issuer.sign({ sub: 'wrong' })],
      ['job', await issuer.sign({ exp: nowS() - 100, iat: nowS() - 200 })],
      ['job', await issuer.sign({}, { key: stranger.privateKey })],
      ['job', 'no token'],
    ];
    const answers = new Set<string>();
    for (const [trust, token] of tokens) {
      const body = JSON.stringify({ grant_type: JWT_BEARER, assertion: token, federation_rule_id: trust });
      const headers = { 'content-type': 'application/json', ...fromAnother() };
      const at = `${gateway.url}/v1/oauth/token`;
      const asserted = await exchanged(await fetch(at, { method: 'POST', headers, body }));
      for (const answer of [await exchange(gateway, trust, token, {}, fromAnother()), asserted]) {
        const shown = [...answer.headers].filter(([name]) => name !== 'date');
        answers.add(JSON.stringify([answer.status, shown, answer.text]));
      }
    }
    expect([...answers].map((answer) => JSON.parse(answer) as unknown[])).toMatchObject([
      [400, expect.anything(), REJECTED],
      [400, expect.anything(), REJECTED.replace('invalid_request', 'invalid_grant')],
    ]);
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
      await expectRejection(replica, 'job', token, 'audience');
      const { checks } = await replica.admin<{ checks: { name: string; met: boolean }[] }>(
        'POST',
        '/trusts/job/test',
        { token },
      );
      expect(checks.filter(({ met }) => !met).map(({ name }) => name)).toEqual(['audience']);
    } finally {
      warn.mockRestore();
      await replica.stop();
    }
  });

  it('from an address outside the networks of the trust', async () => {
    await createTrust('near', { sub: ['job'] }, { cidrs: ['127.0.0.0/8', '2001:db8::/32'] });
    const from = async (address: string | null) => {
      const headers: Record<string, string> = address === null ? {} : { 'x-forwarded-for': address };
      return (await exchange(gateway, 'near', await issuer.sign(), {}, headers)).status;
    };
    expect([await from(null), await from('2001:db8::7')]).toEqual([200, 200]);
    expect([await from('203.0.113.7'), await from('2001:db9::7')]).toEqual([400, 400]);
    // Another client of the proxy, whatever it says that it forwards.
    expect(await from('127.0.0.1, 203.0.113.7')).toBe(400);
    const reasons = (await failuresOf('near')).map(({ reason }) => reason);
    expect(reasons).toEqual(Array(3).fill('the client is in none of the networks of the trust'));
  });
});

describe('the conditions of a trust are held against the JSON of a token', () => {
  const conditions = { sub: ['job'], n: [1], b: [true], '/a/b': ['x'], path: ['repo:acme/api:*'] };
  const met = { n: 1, b: true, a: { b: 'x' }, path: 'repo:acme/api:main' };
  beforeAll(() => createTrust('typed', conditions));

  it('which meets them', async () => {
    expect((await exchange(gateway, 'typed', await issuer.sign(met))).status).toBe(200);
  });

  it.each([
    { n: '1' },
    { n: true },
    { n: [1] },
    { b: 'true' },
    { b: 1 },
    { b: undefined },
    { a: undefined },
    { a: null },
    { a: 'x' },
    { a: [{ b: 'x' }] },
    { a: { b: ['x'] } },
    { a: { c: 'x' } },
    { a: undefined, 'a/b': 'x', '/a/b': 'x' },
    { path: 'repo:acme/api-evil:main' },
    { path: 'repo:acme/api:' },
    { path: 'Repo:acme/api:main' },
    { path: ['repo:acme/api:main'] },
    { path: null },
  ])('and rejects %j', async (claims) => {
    await rejects(await issuer.sign({ ...met, ...claims }), 'claim', 'typed');
  });

  it('a name that does not begin with / is that of a claim, also with / in it', async () => {
    const names = { 'oidc.circleci.com/project-id': ['p'], 'https://sts.amazonaws.com/': ['a'] };
    await createTrust('url', { sub: ['job'], ...names, 'm~1n': ['x'] });
    const claims = {
      'oidc.circleci.com/project-id': 'p',
      'https://sts.amazonaws.com/': 'a',
      'm~1n': 'x',
    };
    expect((await exchange(gateway, 'url', await issuer.sign(claims))).status).toBe(200);
    const nested = { 'oidc.circleci.com': { 'project-id': 'p' } };
    const without = { ...claims, 'oidc.circleci.com/project-id': undefined, ...nested };
    await rejects(await issuer.sign(without), 'claim', 'url');
  });

  it('a member of a text or of a list is no claim', async () => {
    await createTrust('length', { sub: ['job'], '/sub/length': [3] });
    await rejects(await issuer.sign(), 'claim', 'length');
    await createTrust('first', { sub: ['job'], '/groups/0': ['a'] });
    await rejects(await issuer.sign({ groups: ['a'] }), 'claim', 'first');
    expect((await exchange(gateway, 'first', await issuer.sign({ groups: { 0: 'a' } }))).status).toBe(200);
  });
});

describe('the reason of a rejection', () => {
  it('is kept with the claims that are named, if the issuer signed it', async () => {
    await createTrust('kept', { sub: ['job'], '/kubernetes.io/namespace': ['prod'] });
    const private_ = { email: 'jane@example.com' };
    const wrong = { 'kubernetes.io': { namespace: 'test' }, ...private_ };
    await rejects(await issuer.sign(wrong), 'claim', 'kept');
    await rejects(await issuer.sign({ sub: 'job' }, { key: stranger.privateKey }), 'signature', 'kept');
    expect(await failuresOf('kept')).toMatchObject([
      {
        reason: 'the claim /kubernetes.io/namespace does not have an accepted value',
        claims: { sub: 'job', '/kubernetes.io/namespace': 'test' },
      },
    ]);
    expect(JSON.stringify(await failuresOf('kept'))).not.toContain('jane');
  });

  it('is kept whatever the claims hold, and those of others with it', async () => {
    await createTrust('odd', { sub: ['job'] });
    const smileys = `${'x'.repeat(254)}${'\u{1f600}'.repeat(10)}`;
    for (const aud of [smileys, 'a\0b', 'a\ud800b', ['a\udc00b'], { 'a\0b': 1 }, 'plain'])
      await rejects(await issuer.sign({ aud }), 'audience', 'odd');
    const shown = (await failuresOf('odd')).map(({ claims }) => claims.aud);
    expect(shown).toEqual([
      'plain',
      '{"a\\u0000b":1}…',
      '["a\\udc00b"]…',
      '"a\\ud800b"…',
      '"a\\u0000b"…',
      `"${'x'.repeat(254)}\ufffd…`,
    ]);
  });

  it('is kept once if the trust changes meanwhile', async () => {
    await createTrust('changed', { sub: ['job'] });
    const directory = gateway.gateway.app.get(TrustDirectory);
    const before = directory.find('changed')!;
    await gateway.admin('PATCH', '/trusts/changed', { claims: { sub: ['other'] } });
    // As a process sees it that has not heard of the change.
    jest.spyOn(directory, 'find').mockReturnValueOnce(before);
    expect((await exchange(gateway, 'changed', await issuer.sign())).status).toBe(400);
    expect(await failuresOf('changed')).toHaveLength(1);
  });
});

it('is accepted by a trust that replaces one of the same name, which a process may still know', async () => {
  await createTrust('replaced', { sub: ['another'] });
  const directory = gateway.gateway.app.get(TrustDirectory);
  const before = { ...directory.find('replaced')!, claims: { sub: ['job'] } };
  await gateway.admin('DELETE', '/trusts/replaced');
  await createTrust('replaced', { sub: ['job'] });
  jest.spyOn(directory, 'find').mockReturnValueOnce(before);
  expect((await exchange(gateway, 'replaced', await issuer.sign())).status).toBe(200);
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
    // fetch sends the Host of the URL, whatever it is given.
    const forged = ['Host: evil.example', 'X-Forwarded-Host: evil.example', 'Forwarded: host=evil.example'];
    const response = await send(gateway, `GET ${path}`, forged);
    expect(response.status).toBe(200);
    const document = response.json();
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
