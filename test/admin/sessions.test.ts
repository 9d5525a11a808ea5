import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { CONSOLE, cookieOf, send, signIn } from './browser.js';

let postern: TestGateway;
beforeAll(async () => {
  postern = await startTestGateway();
});
afterAll(() => postern.stop());

const TOKEN = JSON.stringify({ token: ADMIN_TOKEN });
const HTTPS = ['Host: gateway.example', 'Origin: https://gateway.example', 'Sec-Fetch-Site: same-origin'];
const JSON_TYPE = 'Content-Type: application/json';

const keysWith = async (cookie: string, to = postern) =>
  (await send(to, 'GET /admin/v1/keys', [cookie])).status;
const sessions = () => postern.database.query<Record<string, unknown>>('SELECT * FROM admin_session');

describe('signing in', () => {
  it('sets a cookie for this host only, which scripts and other sites cannot use', async () => {
    const answer = await send(postern, 'POST /admin/v1/session', [...HTTPS, JSON_TYPE], TOKEN);
    expect(answer.status).toBe(204);
    expect(answer.header('cache-control')).toBe('no-store');
    expect(answer.header('set-cookie')).toMatch(
      /^__Host-postern=[\w-]{43}; Path=\/; Max-Age=604800; HttpOnly; Secure; SameSite=Strict$/,
    );
  });

  it('sets a cookie without Secure on loopback, over plain HTTP', async () => {
    const answer = await send(postern, 'POST /admin/v1/session', CONSOLE, TOKEN);
    expect(answer.header('set-cookie')).toMatch(
      /^postern_session=[\w-]{43}; Path=\/; Max-Age=604800; HttpOnly; SameSite=Strict$/,
    );
  });

  it('is rejected over plain HTTP from another machine, where the browser would drop the cookie', async () => {
    const headers = ['Host: 10.1.2.3:8080', 'Origin: http://10.1.2.3:8080', JSON_TYPE];
    const answer = await send(postern, 'POST /admin/v1/session', headers, TOKEN);
    expect(answer.status).toBe(400);
    expect(answer.header('set-cookie')).toBeUndefined();
    expect(answer.body.toString()).toContain('HTTPS');
  });

  it.each([
    ['a wrong token', 401, CONSOLE, '{"token":"wrong-token-0123456789"}'],
    ['a gateway key', 401, CONSOLE, () => JSON.stringify({ token: postern.key })],
    ['no token', 400, CONSOLE, '{}'],
    ['another type', 415, ['Content-Type: text/plain', 'Sec-Fetch-Site: same-origin'], TOKEN],
    ['a page of another site', 403, [JSON_TYPE, 'Sec-Fetch-Site: cross-site'], TOKEN],
    ['a page of a sibling domain', 403, [JSON_TYPE, 'Sec-Fetch-Site: same-site'], TOKEN],
    ['another origin', 403, [JSON_TYPE, 'Origin: https://evil.example'], TOKEN],
  ])('sets no cookie for %s', async (_, status, headers, body) => {
    const text = typeof body === 'string' ? body : body();
    const answer = await send(postern, 'POST /admin/v1/session', headers, text);
    expect([answer.status, answer.header('set-cookie')]).toEqual([status, undefined]);
  });

  it('gives a new cookie each time, whatever the browser had, and ends the session it had', async () => {
    const planted = `Cookie: postern_session=${'A'.repeat(43)}`;
    const first = await send(postern, 'POST /admin/v1/session', [...CONSOLE, planted], TOKEN);
    expect(cookieOf(first)).not.toContain('AAAA');
    expect(await keysWith(planted)).toBe(401);
    const held = `Cookie: ${cookieOf(first)}`;
    const second = await send(postern, 'POST /admin/v1/session', [...CONSOLE, held], TOKEN);
    expect(cookieOf(second)).not.toBe(cookieOf(first));
    expect(await keysWith(held)).toBe(401);
    expect(await keysWith(`Cookie: ${cookieOf(second)}`)).toBe(200);
  });

  it('counts wrong tokens as the API does', async () => {
    const own = await startTestGateway({ TRUSTED_PROXIES: '127.0.0.0/8' }, postern.database);
    const from = [...HTTPS, JSON_TYPE, 'X-Forwarded-For: 198.51.100.7'];
    let last: string | undefined;
    for (let i = 0; i < 11; i++) {
      const answer = await send(own, 'POST /admin/v1/session', from, '{"token":"wrong"}');
      expect(answer.status).toBe(401);
      last = answer.header('retry-after');
    }
    expect(Number(last)).toBeGreaterThan(0);
    expect((await send(own, 'POST /admin/v1/session', from, TOKEN)).status).toBe(204);
    await own.stop();
  });

  it('stores neither the token nor the cookie', async () => {
    const cookie = await signIn(postern, ADMIN_TOKEN);
    const stored = JSON.stringify(
      (await sessions()).map((row) => ({ ...row, digest: (row.digest as Buffer).toString('latin1') })),
    );
    expect(stored).not.toContain(ADMIN_TOKEN);
    expect(stored).not.toContain(cookie.split('=')[1]!);
  });
});

describe('a session', () => {
  it('is shown, and null for nobody', async () => {
    const without = await send(postern, 'GET /admin/v1/session');
    expect([without.status, without.json()]).toEqual([200, { session: null, time_zone: 'UTC' }]);
    const unknown = await send(postern, 'GET /admin/v1/session', [
      `Cookie: postern_session=${'B'.repeat(43)}`,
    ]);
    expect([unknown.status, unknown.json()]).toEqual([200, { session: null, time_zone: 'UTC' }]);
    const answer = await send(postern, 'GET /admin/v1/session', [await signIn(postern, ADMIN_TOKEN)]);
    expect(answer.header('cache-control')).toBe('no-store');
    const { session } = answer.json() as { session: { created_at: string; expires_at: string } };
    expect(session).toMatchObject({ actor: 'admin-token', role: 'admin', teams: null });
    expect(Date.parse(session.expires_at) - Date.parse(session.created_at)).toBe(7 * 86_400_000);
  });

  it('opens the API on every replica, and ends on every replica when the user signs out', async () => {
    const replica = await startTestGateway({}, postern.database);
    const cookie = await signIn(postern, ADMIN_TOKEN);
    expect(await keysWith(cookie, replica)).toBe(200);
    const out = await send(postern, 'DELETE /admin/v1/session', [cookie, ...CONSOLE]);
    expect([out.status, out.header('set-cookie')]).toEqual([
      204,
      'postern_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict',
    ]);
    expect(await keysWith(cookie, replica)).toBe(401);
    expect((await send(postern, 'DELETE /admin/v1/session', CONSOLE)).status).toBe(204);
    await replica.stop();
  });

  it('ends after 8 hours without a request, but not while it is used', async () => {
    const cookie = await signIn(postern, ADMIN_TOKEN);
    const age = (hours: number) =>
      postern.database.query(`UPDATE admin_session SET last_seen_at = now() - interval '${hours} hours'`);
    await age(7.9);
    expect(await keysWith(cookie)).toBe(200);
    // That request counted.
    const [seen] = await postern.database.query<{ lately: boolean }>(
      `SELECT bool_or(last_seen_at > now() - interval '1 minute') AS lately FROM admin_session`,
    );
    expect(seen!.lately).toBe(true);
    await age(8.1);
    expect(await keysWith(cookie)).toBe(401);
    await signIn(postern, ADMIN_TOKEN);
    expect(await sessions()).toHaveLength(1);
  });

  it('ends after 7 days', async () => {
    const cookie = await signIn(postern, ADMIN_TOKEN);
    await postern.database.query('UPDATE admin_session SET expires_at = now()');
    expect(await keysWith(cookie)).toBe(401);
  });

  it('ends with the ADMIN_TOKEN that it began with', async () => {
    const cookie = await signIn(postern, ADMIN_TOKEN);
    const changed = await startTestGateway({ ADMIN_TOKEN: 'another-admin-token-012' }, postern.database);
    expect(await keysWith(cookie, changed)).toBe(401);
    expect(await keysWith(cookie)).toBe(200);
    await changed.stop();
  });

  it('does not open what gateway keys open', async () => {
    const cookie = await signIn(postern, ADMIN_TOKEN);
    expect((await send(postern, 'GET /v1/models', [cookie])).status).toBe(401);
  });

  it('does not count beside an Authorization header', async () => {
    const cookie = await signIn(postern, ADMIN_TOKEN);
    const wrong = await send(postern, 'GET /admin/v1/keys', [cookie, 'Authorization: Bearer wrong']);
    expect(wrong.status).toBe(401);
  });

  it('is not taken from a cookie without the prefix where another host could have set it', async () => {
    const cookie = await signIn(postern, ADMIN_TOKEN);
    const ask = (...headers: string[]) => send(postern, 'GET /admin/v1/keys', [cookie, ...headers]);
    expect((await ask('Host: gateway.example')).status).toBe(401);
    expect((await ask('X-Forwarded-Proto: https')).status).toBe(401);
    const value = cookie.slice(cookie.indexOf('='));
    const prefixed = `Cookie: __Host-postern${value}`;
    expect((await send(postern, 'GET /admin/v1/keys', [prefixed, 'Host: gateway.example'])).status).toBe(200);
    const twice = `Cookie: __Host-postern${value}; __Host-postern=${'C'.repeat(43)}`;
    expect((await send(postern, 'GET /admin/v1/keys', [twice])).status).toBe(401);
  });
});

describe('a change with a session cookie', () => {
  const CHANGES = [
    ['POST /admin/v1/teams', '{"name":"forged"}'],
    ['DELETE /admin/v1/session', ''],
    ['POST /admin/v1/nothing', '{}'],
  ] as const;
  const without = (name: string) => CONSOLE.filter((header) => !header.startsWith(name));

  describe.each(CHANGES)('%s', (line, body) => {
    it.each([
      ['without the header of the console', without('X-Postern')],
      ['without a content type', without('Content-Type')],
      ['as a form', [...without('Content-Type'), 'Content-Type: application/x-www-form-urlencoded']],
      ['as text', [...without('Content-Type'), 'Content-Type: text/plain;application/json']],
      ['from another site', [...without('Sec-Fetch'), 'Sec-Fetch-Site: cross-site']],
      ['from a sibling domain', [...without('Sec-Fetch'), 'Sec-Fetch-Site: same-site']],
      ['from another origin', [...without('Sec-Fetch'), 'Origin: https://evil.example']],
      ['from no origin', [...without('Sec-Fetch'), 'Origin: null']],
      ['without an origin', without('Sec-Fetch')],
    ])('is rejected %s', async (_, headers) => {
      const cookie = await signIn(postern, ADMIN_TOKEN);
      const answer = await send(postern, line, [cookie, ...headers], body);
      expect(answer.status).toBe(403);
      expect(answer.json()).toMatchObject({ error: { code: 'forbidden' } });
      expect(await keysWith(cookie)).toBe(200);
      expect(await postern.database.query(`SELECT FROM team WHERE name = 'forged'`)).toEqual([]);
    });
  });

  it('is made from the console, also where the browser sends only Origin', async () => {
    const cookie = await signIn(postern, ADMIN_TOKEN);
    const { host } = new URL(postern.url);
    const made = await send(postern, 'POST /admin/v1/teams', [cookie, ...CONSOLE], '{"name":"by console"}');
    expect(made.status).toBe(201);
    const headers = [cookie, ...without('Sec-Fetch'), `Origin: http://${host}`];
    expect((await send(postern, 'POST /admin/v1/teams', headers, '{"name":"by origin"}')).status).toBe(201);
  });

  it('needs none of this with a token, and no other origin may read what is answered', async () => {
    const headers = [`Authorization: Bearer ${ADMIN_TOKEN}`, JSON_TYPE, 'Origin: https://evil.example'];
    const answer = await send(postern, 'POST /admin/v1/teams', headers, '{"name":"by token"}');
    expect(answer.status).toBe(201);
    expect(answer.headers.filter(([name]) => /^access-control/i.test(name))).toEqual([]);
  });
});
