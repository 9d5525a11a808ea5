import { OpenIdProvider } from '../admin/openid-provider.js';
import { soon } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { unusedPort } from '../support/unused-port.js';
import { Browser, renew, signedIn, signInSettings, USERS } from './device-flow.js';
import { statusWith } from './exchanges.js';

const ENDED = { status: 400, error: 'invalid_grant' };

let provider: RawProvider;
let issuer: OpenIdProvider;
let postern: TestGateway;
let users: Record<string, Record<string, unknown>>;
beforeAll(async () => {
  for (const level of ['warn', 'info'] as const) jest.spyOn(console, level).mockImplementation(() => {});
  provider = await RawProvider.start((req) => void req.socket.write(answer('200 OK', [], 'reached')));
});
afterAll(() => provider.stop());
beforeEach(() => (users = { ...USERS }));
afterEach(async () => {
  await postern.stop();
  await issuer.stop();
});

/** Starts an OpenID provider, and a gateway at which people sign in with it. */
async function start(options: { refresh?: boolean; userinfo?: boolean; slash?: boolean }): Promise<void> {
  const publicUrl = `http://127.0.0.1:${await unusedPort()}`;
  issuer = await OpenIdProvider.start(publicUrl, users, options);
  const settings = { PROVIDER_URL: provider.url, ...signInSettings(issuer, publicUrl) };
  postern = await startTestGateway({ ...settings, OIDC_ISSUER: issuer.url + (options.slash ? '/' : '') });
  // Longer than a sign-in without a refresh token.
  await postern.admin('PATCH', '/teams/default', { sign_in: { token_minutes: 720 } });
}

const rows = (sql: string) => postern.database.query<Record<string, unknown>>(sql);
const lastSignIn = async () =>
  (
    await rows(`SELECT extract(epoch FROM expires_at - created_at)::int / 3600 AS hours, ended_at IS NOT NULL AS ended,
                       end_reason, idp_checked_at > created_at AS checked FROM sign_in ORDER BY id DESC LIMIT 1`)
  )[0]!;

/** As if the newest sign-in had begun nine hours ago. */
const nineHoursLater = () =>
  rows(`UPDATE sign_in SET created_at = created_at - interval '9 hours', expires_at = expires_at - interval '9 hours',
                           idp_checked_at = idp_checked_at - interval '9 hours'`);

it('without a refresh token of the provider, a sign-in and its tokens end after 8 hours', async () => {
  await start({ refresh: false });
  const { refresh, expiresIn } = await signedIn(postern, issuer);
  expect(await lastSignIn()).toMatchObject({ hours: 8 });
  expect(expiresIn).toBeLessThanOrEqual(8 * 3_600);
  const asked = issuer.tokenRequests;
  const renewed = await renew(postern, refresh);
  expect([renewed.status, issuer.tokenRequests]).toEqual([200, asked]);
  // A renewal is no new sign-in.
  expect(renewed.expires_in).toBeLessThanOrEqual(8 * 3_600);
  await nineHoursLater();
  expect(await renew(postern, renewed.refresh_token!)).toMatchObject(ENDED);
});

it.each([true, false])(
  'groups that only the user info names let in and keep out; ID token: %p',
  async (has) => {
    users.mover = { groups: ['team-default'], email: 'mo@example.com', email_verified: true };
    await start({ refresh: true });
    issuer.groupsInIdTokens = false;
    issuer.idTokensAtRefresh = has;
    const { refresh } = await signedIn(postern, issuer, 'mover');
    const renewed = await renew(postern, refresh);
    expect(renewed.status).toBe(200);
    expect(await lastSignIn()).toMatchObject({ hours: 30 * 24, ended: false, checked: true });
    await nineHoursLater();
    users.mover = { ...users.mover, groups: ['team-nowhere'] };
    expect(await renew(postern, renewed.refresh_token!)).toMatchObject(ENDED);
    expect(await lastSignIn()).toMatchObject({ ended: true, end_reason: 'no_team' });
    await soon(async () => (await statusWith(postern, renewed.access_token!)) === 401);
  },
);

it.each([true, false])(
  'user info of somebody else ends a sign-in, as their ID token does; ID token: %p',
  async (has) => {
    await start({ refresh: true });
    issuer.groupsInIdTokens = false;
    issuer.idTokensAtRefresh = has;
    const { access, refresh } = await signedIn(postern, issuer);
    issuer.subjectOfUserInfo = 'heir';
    expect(await renew(postern, refresh)).toMatchObject(ENDED);
    expect(await lastSignIn()).toMatchObject({ ended: true, end_reason: 'provider' });
    await soon(async () => (await statusWith(postern, access)) === 401);
  },
);

it('if the provider says nothing of the person at a renewal, a sign-in ends after 8 hours', async () => {
  await start({ refresh: true, userinfo: false });
  issuer.idTokensAtRefresh = false;
  const { refresh } = await signedIn(postern, issuer);
  const renewed = await renew(postern, refresh);
  expect(renewed.status).toBe(200);
  // It has not been checked.
  expect(await lastSignIn()).toMatchObject({ ended: false, checked: false });
  await nineHoursLater();
  expect(await renew(postern, renewed.refresh_token!)).toMatchObject(ENDED);
  expect(await lastSignIn()).toMatchObject({ ended: true, end_reason: 'provider' });
  await soon(async () => (await statusWith(postern, renewed.access_token!)) === 401);
});

it('whose name has no final slash, where OIDC_ISSUER has one, signs people in and out', async () => {
  await start({ slash: true });
  const { access } = await signedIn(postern, issuer);
  const browser = new Browser(postern);
  const begun = await browser.get('/admin/v1/oidc/start');
  await browser.get(await browser.atProvider(issuer, begun.headers.get('location')!, 'jane'));
  const session = async () => JSON.parse((await browser.get('/admin/v1/session')).html) as object;
  expect(await session()).toMatchObject({ session: { user_id: expect.any(String) as string } });
  const response = await fetch(`${postern.url}/admin/v1/oidc/logout`, {
    method: 'POST',
    body: new URLSearchParams({ logout_token: await issuer.logoutToken({ sub: 'jane' }) }),
  });
  expect(response.status).toBe(200);
  await soon(async () => (await statusWith(postern, access)) === 401);
  expect(await session()).toMatchObject({ session: null });
});
