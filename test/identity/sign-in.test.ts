import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OpenIdProvider } from '../admin/openid-provider.js';
import { runHere } from '../cli/run-here.js';
import { send } from '../admin/browser.js';
import { randomSecret } from '../../src/platform/random-secret.js';
import { eventually, soon } from '../support/eventually.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { unusedPort } from '../support/unused-port.js';
import {
  Browser,
  nextAddress,
  poll,
  renew,
  signedIn,
  signInSettings,
  startDevice,
  USERS,
} from './device-flow.js';
import { postForm, statusWith } from './exchanges.js';

let provider: RawProvider;
let issuer: OpenIdProvider;
let postern: TestGateway;

beforeAll(async () => {
  for (const level of ['warn', 'info'] as const) jest.spyOn(console, level).mockImplementation(() => {});
  provider = await RawProvider.start((req) => void req.socket.write(answer('200 OK', [], 'reached')));
  const publicUrl = `http://127.0.0.1:${await unusedPort()}`;
  issuer = await OpenIdProvider.start(publicUrl, USERS, { refresh: true });
  postern = await startTestGateway({
    PROVIDER_URL: provider.url,
    ...signInSettings(issuer, publicUrl),
  });
  await postern.admin('PATCH', '/teams/default', { sign_in: { budget_usd_per_month: '50' } });
  await postern.admin('POST', '/teams', { name: 'research', sign_in: {} });
});
afterAll(async () => {
  await postern.stop();
  await issuer.stop();
  await provider.stop();
});

const rows = (sql: string, values: unknown[] = []) =>
  postern.database.query<Record<string, unknown>>(sql, values);

describe('the metadata', () => {
  it.each(['', '/p/default'])('announces the grants of sign-ins at %j', async (base) => {
    const forged = ['Host: evil.example', 'X-Forwarded-Host: evil.example'];
    const response = await send(postern, `GET ${base}/.well-known/oauth-authorization-server`, forged);
    const issuerUrl = postern.url + base;
    expect(response.json()).toEqual({
      issuer: issuerUrl,
      token_endpoint: `${issuerUrl}/oauth/token`,
      revocation_endpoint: `${issuerUrl}/oauth/revoke`,
      device_authorization_endpoint: `${issuerUrl}/oauth/device_authorization`,
      response_types_supported: [],
      grant_types_supported: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
      token_endpoint_auth_methods_supported: ['none'],
      revocation_endpoint_auth_methods_supported: ['none'],
    });
    const form = [...forged, 'Content-Type: application/x-www-form-urlencoded'];
    const started = await send(postern, `POST ${base}/oauth/device_authorization`, form, 'surface=x');
    expect(started.json()).toMatchObject({ verification_uri: `${postern.url}/device` });
  });
});

describe('a sign-in from a client', () => {
  it.each(['', '/p/default'])('leads from a code to a token that calls: %j', async (base) => {
    const { status, body, headers } = await startDevice(postern, base);
    expect(status).toBe(200);
    expect(headers.get('cache-control')).toBe('no-store');
    const { device_code, user_code, ...rest } = body;
    expect(device_code).toMatch(/^ptd_[0-9A-Za-z]{38}$/);
    expect(user_code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
    expect(rest).toEqual({ verification_uri: `${postern.url}/device`, expires_in: 600, interval: 5 });
    expect(await poll(postern, body.device_code)).toMatchObject({
      status: 400,
      error: 'authorization_pending',
    });
    const browser = new Browser(postern);
    const asked = await browser.identify(issuer, body.user_code.toLowerCase().replace('-', ' '), 'jane');
    expect(asked.html).toContain('Jane Doe (jane@example.com)');
    expect(asked.html).toContain('Claude Code, it says');
    expect(asked.html).toMatch(/<dt>Address<\/dt><dd>10\.1\.\d+\.\d+<\/dd>/);
    expect(asked.html).toContain('<strong>default</strong>');
    // Nobody is signed in without the button.
    await rows('UPDATE device_request SET last_poll_at = NULL');
    expect(await poll(postern, body.device_code)).toMatchObject({ error: 'authorization_pending' });
    expect((await browser.confirm(asked, 'approve')).html).toContain('Go back to the terminal');
    const tokens = await poll(postern, body.device_code);
    const { access_token, refresh_token, expires_in, ...others } = tokens;
    expect(access_token).toMatch(/^ptn_[0-9A-Za-z]{38}$/);
    expect(refresh_token).toMatch(/^ptr_[0-9A-Za-z]{38}$/);
    expect(others).toEqual({ status: 200, token_type: 'Bearer', email: 'jane@example.com' });
    expect(expires_in).toBeGreaterThan(3_500);
    expect(expires_in).toBeLessThanOrEqual(3_600);
    expect(await statusWith(postern, access_token!)).toBe(200);
    const [row] = await rows('SELECT subject FROM gateway_key_secret WHERE kind = $1', ['sign_in']);
    expect(row).toEqual({ subject: 'sso:jane@example.com' });
  });

  it('gives a person one key in a team, with what the team allows, and with it one budget', async () => {
    await signedIn(postern, issuer, 'boss');
    await signedIn(postern, issuer, 'boss');
    const { data } = await postern.admin<{ data: Record<string, unknown>[] }>('GET', '/keys?search=boss');
    expect(data).toEqual([
      expect.objectContaining({
        name: 'boss@example.com',
        team: 'default',
        origin: 'sign_in',
        prefix: null,
        endpoints: 'inference',
        providers: null,
        budgets: [expect.objectContaining({ usd: '50.00', period: 'month', mode: 'block' })],
      }),
    ]);
    await postern.storeProviders('spare');
    const signIn = { budget_usd_per_month: '20', providers: ['spare', 'default'] };
    await postern.admin('PATCH', '/teams/default', { sign_in: signIn });
    expect(await postern.admin('GET', `/keys/${String(data[0]!.id)}`)).toMatchObject({
      budgets: [expect.objectContaining({ usd: '20.00' })],
      providers: ['spare', 'default'],
    });
    await postern.admin('PATCH', '/teams/default', { sign_in: { budget_usd_per_month: '50' } });
  });

  it('asks a person with several teams which one pays', async () => {
    const { body } = await startDevice(postern);
    const browser = new Browser(postern);
    const asked = await browser.identify(issuer, body.user_code, 'both');
    expect(asked.html).toContain('Team that pays');
    expect((await browser.confirm(asked, 'approve', 'research')).status).toBe(200);
    const { access_token: token } = await poll(postern, body.device_code);
    expect(await statusWith(postern, token!)).toBe(200);
    const { data } = await postern.admin<{ data: { team: string }[] }>('GET', '/keys?search=bo@');
    expect(data.map(({ team }) => team)).toEqual(['research']);
  });

  it('has a key without a secret: it is not rotated, and neither export nor apply knows it', async () => {
    const { access, refresh } = await signedIn(postern, issuer);
    const { data } = await postern.admin<{ data: { id: string }[] }>('GET', '/keys?search=jane');
    const response = await fetch(`${postern.url}/admin/v1/keys/${data[0]!.id}/rotate`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
      body: '{}',
    });
    expect(response.status).toBe(409);
    expect(await response.text()).toContain('this key is for sign-ins and has no secret');

    await postern.admin('POST', '/keys', { team: 'default', name: 'unnamed' });
    const folder = mkdtempSync(join(tmpdir(), 'postern-sign-in-'));
    const run = async (...args: string[]) => {
      const env = { POSTERN_URL: postern.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN };
      const { code, stdout, stderr } = await runHere(args, env, folder);
      if (code !== 0) throw new Error(stderr);
      return stdout;
    };
    for (const team of [[], ['--team', 'default']]) {
      const { keys } = JSON.parse(await run('export', '--json', ...team)) as { keys: { name: string }[] };
      expect(keys.map(({ name }) => name)).toEqual(['first', 'unnamed']);
    }
    writeFileSync(join(folder, 'keys.yaml'), 'keys: [{ team: default, name: first }]\n');
    const apply = ['apply', '-f', 'keys.yaml', '--prune', '--yes', '--json'];
    const { plan } = JSON.parse(await run(...apply)) as { plan: { action: string; name: string }[] };
    expect(plan.map(({ action, name }) => [action, name])).toEqual([['delete', 'default/unnamed']]);
    rmSync(folder, { recursive: true });
    expect(await statusWith(postern, access)).toBe(200);
    expect((await renew(postern, refresh)).status).toBe(200);
  });

  it('ends after the days of the team, and the refresh token of the provider is encrypted', async () => {
    await signedIn(postern, issuer);
    const [row] = await rows(`
      SELECT extract(epoch FROM expires_at - created_at) / 86400 AS days, idp_refresh IS NOT NULL AS sealed
      FROM sign_in ORDER BY created_at DESC LIMIT 1`);
    expect({ ...row, days: Number(row!.days) }).toEqual({ days: 30, sealed: true });
    const dump = await rows('SELECT encode(idp_refresh, $1) AS text FROM sign_in', ['escape']);
    expect(String(dump[0]!.text)).not.toMatch(/^[\w-]{20,}$/);
  });

  it('ends the sign-in that was renewed longest ago for the 21st', async () => {
    const first = await signedIn(postern, issuer, 'both', 'research');
    for (let i = 0; i < 20; i++) await signedIn(postern, issuer, 'both', 'research');
    expect(await renew(postern, first.refresh)).toMatchObject({ status: 400, error: 'invalid_grant' });
    const [row] =
      await rows(`SELECT count(*)::int AS live FROM sign_in si JOIN person p ON p.id = si.person_id
      WHERE p.email = 'bo@example.com' AND si.ended_at IS NULL`);
    expect(row).toEqual({ live: 20 });
  });
});

describe('a renewal', () => {
  it('gives another pair, and the same pair to whoever repeats it within a minute', async () => {
    const { access, refresh } = await signedIn(postern, issuer);
    const [one, two] = await Promise.all([renew(postern, refresh), renew(postern, refresh)]);
    expect(one.status).toBe(200);
    expect(two).toEqual({ ...one, expires_in: two.expires_in });
    expect(one.access_token).not.toBe(access);
    for (const token of [access, one.access_token!]) expect(await statusWith(postern, token)).toBe(200);
    await rows(`UPDATE refresh_token SET used_at = now() - interval '61 seconds' WHERE used_at IS NOT NULL`);
    expect(await renew(postern, refresh)).toMatchObject({ status: 400, error: 'invalid_grant' });
    // It ends nothing: it may be a second terminal. People see it.
    expect((await renew(postern, one.refresh_token!)).status).toBe(200);
    const seen = await rows('SELECT FROM sign_in WHERE spent_refused_at IS NOT NULL');
    expect(seen).toHaveLength(1);
  });

  it('gives the pair of a device code again for a minute', async () => {
    const { access, refresh, device } = await signedIn(postern, issuer);
    expect(await poll(postern, device)).toMatchObject({ access_token: access, refresh_token: refresh });
    await rows(
      `UPDATE device_request SET redeemed_at = now() - interval '61 seconds' WHERE state = 'redeemed'`,
    );
    expect(await poll(postern, device)).toMatchObject({ status: 400, error: 'invalid_grant' });
  });

  it.each([
    ['person', `UPDATE person SET ended_at = now()`, `UPDATE person SET ended_at = NULL`],
    ['team', `UPDATE team SET disabled = true`, `UPDATE team SET disabled = false`],
    ['key', `UPDATE gateway_key SET disabled = true`, `UPDATE gateway_key SET disabled = false`],
    [
      'sign-in of the team',
      `UPDATE team SET sign_in = NULL`,
      `UPDATE team SET sign_in = '{"days":30,"token_minutes":60}'`,
    ],
    ['sign-in', `UPDATE sign_in SET ended_at = now(), end_reason = 'ended'`, ''],
    ['time', `UPDATE sign_in SET last_renewed_at = now() - interval '15 days'`, ''],
  ])('is rejected once its %s has ended, and so are its tokens', async (what, end, undo) => {
    const { access, refresh } = await signedIn(postern, issuer);
    expect(await statusWith(postern, access)).toBe(200);
    await rows(end);
    expect(await renew(postern, refresh)).toMatchObject({ status: 400, error: 'invalid_grant' });
    // These two change what is issued only.
    if (!['sign-in of the team', 'time'].includes(what))
      await soon(async () => (await statusWith(postern, access)) === 401);
    if (undo !== '') await rows(undo);
  });
});

describe('revocation', () => {
  it('ends one access token, and with a refresh token the sign-in', async () => {
    const { access, refresh } = await signedIn(postern, issuer);
    const { access_token: second, refresh_token: next } = await renew(postern, refresh);
    const revoke = (token: string) => postForm(`${postern.url}/p/default/oauth/revoke`, { token });
    expect((await revoke(access)).status).toBe(200);
    await soon(async () => (await statusWith(postern, access)) === 401);
    expect(await statusWith(postern, second!)).toBe(200);
    expect((await revoke(next!)).status).toBe(200);
    await soon(async () => (await statusWith(postern, second!)) === 401);
    expect(await renew(postern, next!)).toMatchObject({ error: 'invalid_grant' });
    // Each is recorded once, with its ID, however often it is asked for.
    for (const token of [access, next!]) await revoke(token);
    const ended = await rows(`
      SELECT l.subject_type, l.subject_name, l.actor, s.id IS NOT NULL AS is_token, si.id IS NOT NULL AS is_sign_in
      FROM audit_log l LEFT JOIN gateway_key_secret s ON s.id = l.subject_id LEFT JOIN sign_in si ON si.id = l.subject_id
      WHERE l.actor = 'oauth-revoke' ORDER BY l.id`);
    expect(ended).toEqual([
      expect.objectContaining({ subject_type: 'issued_token', is_token: true, is_sign_in: false }),
      expect.objectContaining({ subject_type: 'sign_in', is_token: false, is_sign_in: true }),
    ]);
  });

  it.each(['ptn_', 'ptr_'])('looks up so many unknown tokens of an address: %s', async (prefix) => {
    const headers = { 'x-forwarded-for': nextAddress() };
    const statuses = new Set<number>();
    await eventually(async () => {
      const responses = await Promise.all(
        Array.from({ length: 100 }, () =>
          postForm(`${postern.url}/oauth/revoke`, { token: randomSecret(prefix) }, headers),
        ),
      );
      for (const { status } of responses) statuses.add(status);
      return statuses.has(429);
    });
    expect([...statuses].filter((status) => ![200, 429].includes(status))).toEqual([]);
  });

  it('is recorded of the sign-in that ends because there are too many', async () => {
    await signedIn(postern, issuer);
    const [{ id }] = (await rows('SELECT id FROM sign_in ORDER BY id DESC LIMIT 1')) as [{ id: string }];
    await rows(
      `INSERT INTO sign_in (id, person_id, key_id, surface, expires_at)
       SELECT gen_random_uuid(), person_id, key_id, surface, expires_at FROM sign_in, generate_series(1, 19) WHERE id = $1`,
      [id],
    );
    await rows(`UPDATE sign_in SET last_renewed_at = now() - interval '1 hour' WHERE id = $1`, [id]);
    await signedIn(postern, issuer);
    expect(await rows('SELECT end_reason, idp_refresh FROM sign_in WHERE id = $1', [id])).toEqual([
      { end_reason: 'too_many', idp_refresh: null },
    ]);
    expect(await rows('SELECT actor, action FROM audit_log WHERE subject_id = $1', [id])).toEqual([
      { actor: 'sso:jane@example.com', action: 'ended' },
    ]);
  });
});

it('with SIGN_IN=off, nothing is issued, but tokens go on until they end or an administrator ends them', async () => {
  const one = await signedIn(postern, issuer);
  const other = await signedIn(postern, issuer, 'both', 'research');
  const off = await startTestGateway({ PROVIDER_URL: provider.url, SIGN_IN: 'off' }, postern.database);
  const metadata = '/.well-known/oauth-authorization-server';
  for (const path of [metadata, `${metadata}/p/default`, '/managed/settings', '/device'])
    expect([path, (await fetch(off.url + path)).status]).toEqual([path, 404]);
  for (const [path, token] of [
    ['/oauth/device_authorization', ''],
    ['/oauth/token', ''],
    ['/oauth/revoke', one.refresh],
  ])
    expect([path, (await postForm(off.url + path!, { token: token! })).status]).toEqual([path, 404]);
  // Below a provider, they are calls without a key.
  expect((await fetch(`${off.url}/p/default${metadata}`)).status).toBe(401);
  expect((await postForm(`${off.url}/p/default/oauth/revoke`, { token: one.refresh })).status).toBe(401);

  for (const { access } of [one, other]) expect(await statusWith(off, access)).toBe(200);
  const [signIn] = await rows(
    `SELECT si.id FROM sign_in si JOIN person p ON p.id = si.person_id WHERE p.subject = 'both' ORDER BY si.created_at DESC`,
  );
  await off.admin('DELETE', `/sign-ins/${String(signIn!.id)}`);
  await off.admin('POST', '/people/jane@example.com/end', {});
  for (const { access } of [one, other]) await soon(async () => (await statusWith(off, access)) === 401);
  await off.stop();
});

it('with SIGN_IN=off, a refresh token ends its sign-in while a trust opens the endpoints, also with a token below /p', async () => {
  const off = await startTestGateway({ PROVIDER_URL: provider.url, SIGN_IN: 'off' }, postern.database);
  await off.admin('POST', '/keys', { team: 'default', name: 'ci', secret: false });
  const trust = {
    key: 'default/ci',
    issuer: 'https://issuer.example.com',
    audience: 'x',
    claims: { sub: ['y'] },
  };
  await off.admin('POST', '/trusts', { name: 'job', ...trust });
  for (const [base, withToken] of [
    ['', false],
    ['/p/default', false],
    ['/p/default', true],
  ] as const) {
    const { access, refresh } = await signedIn(postern, issuer, 'both', 'research');
    const headers: Record<string, string> = withToken ? { authorization: `Bearer ${access}` } : {};
    const { status } = await postForm(`${off.url}${base}/oauth/revoke`, { token: refresh }, headers);
    expect([base, withToken, status]).toEqual([base, withToken, 200]);
    await soon(async () => (await statusWith(off, access)) === 401);
  }
  await off.stop();
});
