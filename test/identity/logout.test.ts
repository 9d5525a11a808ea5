import { Logger } from '@nestjs/common';
import { generateKeyPair, SignJWT } from 'jose';
import { IssuerKeys } from '../../src/identity/trusts/issuer-keys.service.js';
import { CLIENT_SECRET, OpenIdProvider } from '../admin/openid-provider.js';
import { soon } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { unusedPort } from '../support/unused-port.js';
import { Browser, poll, renew, signedIn, signInSettings, startDevice, USERS } from './device-flow.js';
import { statusWith } from './exchanges.js';

let provider: RawProvider;
let issuer: OpenIdProvider;
let postern: TestGateway;
let browser: Browser;
beforeAll(async () => {
  for (const level of ['warn', 'info'] as const) jest.spyOn(console, level).mockImplementation(() => {});
  provider = await RawProvider.start((req) => void req.socket.write(answer('200 OK', [], 'reached')));
  const publicUrl = `http://127.0.0.1:${await unusedPort()}`;
  issuer = await OpenIdProvider.start(publicUrl, USERS, { refresh: true });
  postern = await startTestGateway({ PROVIDER_URL: provider.url, ...signInSettings(issuer, publicUrl) });
  await postern.admin('PATCH', '/teams/default', { sign_in: {} });
  browser = new Browser(postern);
});
afterAll(async () => {
  await postern.stop();
  await issuer.stop();
  await provider.stop();
});
beforeEach(async () => {
  // A user may sign in 20 times in ten minutes.
  if (await isSignedIn()) return;
  browser = new Browser(postern);
  const start = await browser.get('/admin/v1/oidc/start');
  await browser.get(await browser.atProvider(issuer, start.headers.get('location')!, 'jane'));
  expect(await isSignedIn()).toBe(true);
});

const isSignedIn = async (one = browser) =>
  (JSON.parse((await one.get('/admin/v1/session')).html) as { session: object | null }).session !== null;

async function logout(token: string | null): Promise<{ status: number; text: string }> {
  const body = new URLSearchParams(token === null ? { other: 'x' } : { logout_token: token });
  const response = await fetch(`${postern.url}/admin/v1/oidc/logout`, { method: 'POST', body });
  expect(response.headers.get('cache-control')).toBe('no-store');
  return { status: response.status, text: await response.text() };
}

/** The session at the provider of the newest session of the console. */
async function sidOf(): Promise<string> {
  const [row] = await postern.database.query<{ idp_sid: string }>(
    'SELECT idp_sid FROM admin_session ORDER BY created_at DESC LIMIT 1',
  );
  expect(row!.idp_sid).toEqual(expect.any(String));
  return row!.idp_sid;
}

it('of a session at the provider ends what began in it, and no static key', async () => {
  const { access, refresh } = await signedIn(postern, issuer);
  const [{ idp_sid: sid } = { idp_sid: '' }] = await postern.database.query<{ idp_sid: string }>(
    'SELECT idp_sid FROM sign_in ORDER BY id DESC LIMIT 1',
  );
  expect(await statusWith(postern, access)).toBe(200);
  // A real provider sends it.
  await issuer.signOut('jane', await sidOf());
  expect(await isSignedIn()).toBe(false);
  expect(await statusWith(postern, access)).toBe(200);
  await issuer.signOut('jane', sid);
  await soon(async () => (await statusWith(postern, access)) === 401);
  expect(await renew(postern, refresh)).toMatchObject({ status: 400, error: 'invalid_grant' });
  expect(await statusWith(postern, postern.key)).toBe(200);
  const { data } = await postern.admin<{ data: object[] }>('GET', '/audit?subject_type=session&action=ended');
  expect(data[0]).toMatchObject({ actor: 'oidc-logout' });
});

it('with a session ends also what of its user is bound to none', async () => {
  const { access } = await signedIn(postern, issuer);
  const heir = await signedIn(postern, issuer, 'heir');
  await postern.database.query(`UPDATE sign_in SET idp_sid = NULL WHERE ended_at IS NULL`);
  expect((await logout(await issuer.logoutToken({ sub: 'jane', sid: 'another' }))).status).toBe(200);
  await soon(async () => (await statusWith(postern, access)) === 401);
  // Of a session that this one is not.
  expect(await isSignedIn()).toBe(true);
  await postern.database.query('UPDATE admin_session SET idp_sid = NULL');
  expect((await logout(await issuer.logoutToken({ sub: 'stranger', sid: 'another' }))).status).toBe(200);
  expect(await isSignedIn()).toBe(true);
  expect((await logout(await issuer.logoutToken({ sub: 'jane', sid: 'another' }))).status).toBe(200);
  expect(await isSignedIn()).toBe(false);
  expect(await statusWith(postern, heir.access)).toBe(200);
});

it('without a session ends all of a user', async () => {
  const { access } = await signedIn(postern, issuer);
  expect((await logout(await issuer.logoutToken({ sub: 'jane' }))).status).toBe(200);
  expect(await isSignedIn()).toBe(false);
  await soon(async () => (await statusWith(postern, access)) === 401);
});

it.each([
  ['a session', async (sid: string) => issuer.logoutToken({ sid })],
  ['a user', async () => issuer.logoutToken({ sub: 'jane' })],
])(
  'of %s ends requests of clients that have no token yet, whether they are confirmed or not',
  async (_, token) => {
    const { body } = await startDevice(postern);
    const one = new Browser(postern);
    const asked = await one.identify(issuer, body.user_code, 'jane');
    const confirmed = await startDevice(postern);
    await new Browser(postern).signIn(issuer, confirmed.body.user_code, 'jane');
    const sids = await postern.database.query<{ idp_sid: string }>(
      `SELECT idp_sid FROM device_request WHERE state IN ('pending', 'approved') AND idp_sid IS NOT NULL`,
    );
    expect(sids).toHaveLength(2);
    for (const { idp_sid: sid } of sids) expect((await logout(await token(sid))).status).toBe(200);
    expect((await one.confirm(asked, 'approve')).status).toBe(410);
    for (const { device_code: code } of [body, confirmed.body])
      expect(await poll(postern, code)).toMatchObject({ status: 400, error: 'invalid_grant' });
  },
);

const seconds = () => Math.floor(Date.now() / 1000);
it.each<[string, () => Promise<string> | string | null]>([
  ['no token', () => null],
  ['what is no token', () => 'x.y.z'],
  ['a token with a nonce', () => issuer.logoutToken({ sub: 'jane', nonce: 'x' })],
  ['a token of another client', () => issuer.logoutToken({ sub: 'jane', aud: 'another' })],
  ['a token of another issuer', () => issuer.logoutToken({ sub: 'jane', iss: 'https://other.example.com' })],
  ['a token without the event', () => issuer.logoutToken({ sub: 'jane', events: undefined })],
  ['a token with another event', () => issuer.logoutToken({ sub: 'jane', events: { other: {} } })],
  ['a token that names nobody', () => issuer.logoutToken({})],
  ['an old token', () => issuer.logoutToken({ sub: 'jane', iat: seconds() - 200 })],
  ['an expired token', () => issuer.logoutToken({ sub: 'jane', exp: seconds() - 1 })],
  ['a token without an end', () => issuer.logoutToken({ sub: 'jane', exp: undefined })],
  ['an access token', () => issuer.logoutToken({ sub: 'jane' }, { typ: 'at+jwt' })],
  [
    'a token signed with the secret of the client',
    async () => {
      const [, payload] = (await issuer.logoutToken({ sub: 'jane' })).split('.');
      const claims = JSON.parse(Buffer.from(payload!, 'base64url').toString()) as Record<string, unknown>;
      const header = { alg: 'HS256', kid: 'of-this-provider', typ: 'logout+jwt' };
      return new SignJWT(claims).setProtectedHeader(header).sign(Buffer.from(CLIENT_SECRET));
    },
  ],
  ['a token of an unknown key', () => issuer.logoutToken({ sub: 'jane' }, { kid: 'made-up' })],
  [
    'a token with another signature',
    async () => issuer.logoutToken({ sub: 'jane' }, {}, (await generateKeyPair('RS256')).privateKey),
  ],
  [
    'an unsigned token',
    async () => {
      const [, payload] = (await issuer.logoutToken({ sub: 'jane' })).split('.');
      return `${Buffer.from('{"alg":"none","kid":"of-this-provider"}').toString('base64url')}.${payload}.`;
    },
  ],
])('ends nothing for %s', async (_, token) => {
  const { access } = await signedIn(postern, issuer);
  expect(await logout(await token())).toEqual({ status: 400, text: '{"error":"invalid_request"}' });
  expect(await isSignedIn()).toBe(true);
  expect(await statusWith(postern, access)).toBe(200);
});

it('is done while the provider shows no keys: those that were last read serve', async () => {
  expect((await logout(await issuer.logoutToken({ sub: 'nobody' }))).status).toBe(200);
  issuer.hidesKeys = true;
  try {
    await postern.gateway.app.get(IssuerKeys).refresh();
    expect((await logout(await issuer.logoutToken({ sub: 'jane' }))).status).toBe(200);
  } finally {
    issuer.hidesKeys = false;
  }
  expect(await isSignedIn()).toBe(false);
});

it('ends nothing the second time', async () => {
  const token = await issuer.logoutToken({ sub: 'jane', sid: await sidOf() });
  expect((await logout(token)).status).toBe(200);
  expect(await isSignedIn()).toBe(false);
  const start = await browser.get('/admin/v1/oidc/start');
  await browser.get(await browser.atProvider(issuer, start.headers.get('location')!, 'jane'));
  expect((await logout(token)).status).toBe(200);
  expect(await isSignedIn()).toBe(true);
});

describe('from one address', () => {
  afterEach(() => jest.restoreAllMocks());

  it('is done for any number of people at once', async () => {
    const sent = Array.from({ length: 150 }, async (_, i) =>
      logout(await issuer.logoutToken({ sub: `nobody ${i}` })),
    );
    expect((await Promise.all(sent)).filter(({ status }) => status !== 200)).toEqual([]);
  });

  it('is done among any number of other tokens, and the log has their reason once', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn');
    // The reason of the first is that of no other test: what was logged a moment ago is not logged again.
    const kinds = [await issuer.logoutToken({ sub: 'jane' }, { jku: 'x' }), 'junk'];
    const junk = Array.from({ length: 200 }, async (_, i) => (await logout(kinds[i % 2]!)).status);
    const good = await logout(await issuer.logoutToken({ sub: 'jane' }));
    expect([...new Set(await Promise.all(junk)), good.status]).toEqual([400, 200]);
    expect(await isSignedIn()).toBe(false);
    const lines = warn.mock.calls
      .map(([line]: unknown[]) => String(line))
      .filter((line) => line.includes('has jku'));
    expect(lines).toHaveLength(1);
  });

  it('is not read while too many have a wrong signature, and the log says so', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn');
    const forged = await issuer.logoutToken({ sub: 'jane' }, {}, (await generateKeyPair('RS256')).privateKey);
    // Counted by the second, which may be over before so many have been checked.
    const found = new Set<number>();
    while (!found.has(429))
      for (const { status } of await Promise.all(Array.from({ length: 100 }, () => logout(forged))))
        found.add(status);
    expect([...found].sort()).toEqual([400, 429]);
    const lines = warn.mock.calls.map(([line]: unknown[]) => String(line));
    expect(lines.filter((line) => line.includes('TRUSTED_PROXIES'))).toHaveLength(1);
    await soon(async () => (await logout(await issuer.logoutToken({ sub: 'jane' }))).status === 200);
    expect(await isSignedIn()).toBe(false);
  });
});
