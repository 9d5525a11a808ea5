import { createHash, randomBytes } from 'node:crypto';
import { Logger } from '@nestjs/common';
import pg from 'pg';
import { PersonKeys } from '../../src/identity/sign-in/person-keys.service.js';
import { OpenIdProvider } from '../admin/openid-provider.js';
import { eventually, soon } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { unusedPort } from '../support/unused-port.js';
import {
  Browser,
  nextAddress,
  type Page,
  poll,
  refreshOf,
  renew,
  signedIn,
  signInSettings,
  startDevice,
  textOf,
  USERS,
} from './device-flow.js';
import { postForm, statusWith } from './exchanges.js';

const LONG = `${'j'.repeat(190)}@example.com`;
const PEOPLE: typeof USERS = {
  ...USERS,
  long: { groups: ['team-default'], email: LONG, email_verified: true },
  longer: { groups: ['team-default'], email: `x${LONG}`.slice(1), email_verified: true },
  hidden: { groups: ['team-default'], email: 'jane\u202e@example.com', email_verified: true },
};

let provider: RawProvider;
let issuer: OpenIdProvider;
let postern: TestGateway;
let replica: TestGateway;
let settings: Record<string, string>;

beforeAll(async () => {
  for (const level of ['warn', 'info'] as const) jest.spyOn(console, level).mockImplementation(() => {});
  provider = await RawProvider.start((req) => void req.socket.write(answer('200 OK', [], 'reached')));
  const publicUrl = `http://127.0.0.1:${await unusedPort()}`;
  issuer = await OpenIdProvider.start(publicUrl, PEOPLE, { refresh: true });
  settings = {
    PROVIDER_URL: provider.url,
    MASTER_KEY: randomBytes(32).toString('base64'),
    ...signInSettings(issuer, publicUrl),
  };
  postern = await startTestGateway(settings);
  replica = await startTestGateway({ ...settings, PORT: String(await unusedPort()) }, postern.database);
  await postern.admin('PATCH', '/teams/default', { sign_in: {} });
  await postern.admin('POST', '/teams', { name: 'research', sign_in: {} });
});
afterAll(async () => {
  await replica.stop();
  await postern.stop();
  await issuer.stop();
  await provider.stop();
});

const rows = <T extends object>(sql: string, values: unknown[] = []) =>
  postern.database.query<T & Record<string, unknown>>(sql, values);

/** A request that a browser may confirm. */
async function identified(as = 'jane'): Promise<{ browser: Browser; page: Page; device: string }> {
  const { body } = await startDevice(postern);
  const browser = new Browser(postern);
  const page = await browser.identify(issuer, body.user_code, as);
  expect([page.status, textOf(page)]).toEqual([200, expect.stringContaining('Sign in this terminal')]);
  return { browser, page, device: body.device_code };
}

/** What is done at a replica that has the next master key already. */
async function afterMasterKey<T>(work: (next: TestGateway) => Promise<T>): Promise<T> {
  const next = await startTestGateway(
    {
      ...settings,
      ...{ MASTER_KEY: randomBytes(32).toString('base64'), MASTER_KEY_PREVIOUS: settings.MASTER_KEY! },
      PORT: String(await unusedPort()),
    },
    postern.database,
  );
  try {
    return await work(next);
  } finally {
    await next.stop();
  }
}

const cookieOf = (browser: Browser) => browser.cookies().get('postern_device')!;

describe('a code of a terminal', () => {
  it('cannot be guessed by many at once: ten wrong ones are looked up for an address', async () => {
    const headers = { 'sec-fetch-site': 'same-origin', 'x-forwarded-for': nextAddress() };
    const typed = await Promise.all(
      Array.from({ length: 40 }, () =>
        new Browser(postern).post('/device', { user_code: 'BCDF-GHJK' }, headers),
      ),
    );
    const count = (status: number) => typed.filter((page) => page.status === status).length;
    expect([count(400), count(429)]).toEqual([10, 30]);
  });

  it('is known after a change of the master key, and counts for its address', async () => {
    const headers = { 'x-forwarded-for': nextAddress() };
    const first = await startDevice(postern, '', headers);
    await rows(
      `INSERT INTO device_request (id, device_digest, user_code_digest, surface, client_network, interval_s, expires_at, created_at)
       SELECT gen_random_uuid(), sha256(i::text::bytea), sha256(i::text::bytea), surface, client_network, interval_s, expires_at,
              created_at - interval '1 minute'
       FROM device_request, generate_series(1, 99) AS i
       WHERE client_network = (SELECT client_network FROM device_request ORDER BY id DESC LIMIT 1)`,
    );
    await afterMasterKey(async (next) => {
      const typed = await new Browser(next).post('/device', { user_code: first.body.user_code });
      expect(typed.status).toBe(200);
      expect((await startDevice(next, '', headers)).status).toBe(200);
    });
    // The oldest of a hundred has made room for it.
    const left = await rows(
      `SELECT FROM device_request WHERE device_digest IN (SELECT sha256(i::text::bytea) FROM generate_series(1, 99) AS i)`,
    );
    expect(left).toHaveLength(98);
    await rows('DELETE FROM device_request');
  });

  it('that is right counts as no guess', async () => {
    const headers = { 'sec-fetch-site': 'same-origin', 'x-forwarded-for': nextAddress() };
    const { body } = await startDevice(postern);
    for (let i = 0; i < 11; i++) {
      const page = await new Browser(postern).post('/device', { user_code: body.user_code }, headers);
      expect(page.status).toBe(200);
    }
  });

  it('gives one pair to two polls at once, at two replicas', async () => {
    const { browser, page, device } = await identified();
    await browser.confirm(page, 'approve');
    const polled = await Promise.all([poll(postern, device), poll(replica, device), poll(postern, device)]);
    expect(polled.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(new Set(polled.map(({ access_token: token }) => token)).size).toBe(1);
    const sessions = await rows(
      'SELECT FROM sign_in WHERE id = (SELECT sign_in_id FROM device_request WHERE device_digest = $1)',
      [createHash('sha256').update(device).digest()],
    );
    expect(sessions).toHaveLength(1);
  });

  it.each([
    ['the person', `UPDATE person SET ended_at = now()`, `UPDATE person SET ended_at = NULL`],
    ['the team', `UPDATE team SET disabled = true`, `UPDATE team SET disabled = false`],
    ['the key', `UPDATE gateway_key SET disabled = true`, `UPDATE gateway_key SET disabled = false`],
  ])('gives no token once %s has ended, though it was confirmed', async (_, end, undo) => {
    const { browser, page, device } = await identified();
    await browser.confirm(page, 'approve');
    await rows(end);
    const before = await rows('SELECT FROM sign_in');
    expect(await poll(postern, device)).toMatchObject({ status: 400, error: 'invalid_grant' });
    expect(await rows('SELECT FROM sign_in')).toHaveLength(before.length);
    // It was for nothing else.
    await rows(undo);
    expect((await poll(postern, device)).status).toBe(200);
  });

  it('gives no token after a denial, and cannot be confirmed any more', async () => {
    const { browser, page, device } = await identified();
    const secret = cookieOf(browser);
    expect(textOf(await browser.confirm(page, 'deny'))).toContain('The terminal was not signed in');
    expect(await poll(postern, device)).toMatchObject({ status: 400, error: 'access_denied' });
    browser.cookies().set('postern_device', secret);
    expect((await browser.confirm(page, 'approve')).status).toBe(410);
    expect(await poll(replica, device)).toMatchObject({ status: 400, error: 'access_denied' });
  });

  it('cannot be denied once it is confirmed', async () => {
    const { browser, page, device } = await identified();
    const secret = cookieOf(browser);
    await browser.confirm(page, 'approve');
    browser.cookies().set('postern_device', secret);
    expect((await browser.confirm(page, 'deny')).status).toBe(410);
    expect((await poll(postern, device)).status).toBe(200);
  });
});

it('a key that is revoked while its person confirms is replaced by no other', async () => {
  const { access } = await signedIn(postern, issuer, 'both', 'research');
  const find = `SELECT k.id FROM gateway_key k JOIN person p ON p.id = k.person_id JOIN team t ON t.id = k.team_id
                WHERE p.subject = 'both' AND t.name = 'research' AND k.revoked_at IS NULL`;
  const [key] = await rows<{ id: string }>(find);
  const { body } = await startDevice(postern);
  const browser = new Browser(postern);
  const page = await browser.identify(issuer, body.user_code, 'both');
  const personKeys = postern.gateway.app.get(PersonKeys);
  const keyOf = personKeys.keyOf.bind(personKeys);
  const spy = jest.spyOn(personKeys, 'keyOf').mockImplementation(async (...of) => {
    await replica.admin('POST', `/keys/${key!.id}/revoke`);
    return keyOf(...of);
  });
  const confirmed = await browser.confirm(page, 'approve', 'research').finally(() => spy.mockRestore());
  expect(textOf(confirmed)).toContain('does not let you sign in');
  expect(await rows(find)).toEqual([]);
  expect(await statusWith(postern, access)).toBe(401);
});

describe('the pages of a request', () => {
  it('begin no session of the console', async () => {
    const { browser } = await identified('boss');
    expect([...browser.cookies().keys()]).toEqual(['postern_device']);
    expect((await browser.get('/admin/v1/keys')).status).toBe(401);
  });

  it('each send no referrer, have no script, are in no frame and in no cache', async () => {
    const { body } = await startDevice(postern);
    const browser = new Browser(postern);
    const code = await browser.post('/device', { user_code: body.user_code });
    const callback = await browser.atProvider(issuer, refreshOf(code), 'jane');
    const back = await browser.get(callback);
    const asked = await browser.get(refreshOf(back));
    const pages = [
      await browser.get('/device'),
      await browser.post('/device', { user_code: 'BBBB-BBBB' }),
      await browser.post('/device', { user_code: body.user_code }, { 'sec-fetch-site': 'cross-site' }),
      ...[code, back, asked, await browser.confirm(asked, 'approve')],
      // Of a request that has ended, and a callback that was used.
      await browser.get('/device/confirm'),
      await browser.get(callback),
    ];
    expect(pages.map(({ status }) => status)).toEqual([200, 400, 403, 200, 200, 200, 200, 410, 400]);
    for (const { headers, html } of pages) {
      expect(headers.get('referrer-policy')).toBe('no-referrer');
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('content-security-policy')).toMatch(
        /^default-src 'none';.* frame-ancestors 'none'$/,
      );
      expect(html).not.toContain('<script');
      expect(html).not.toContain(body.device_code);
    }
  });

  it('show the name of a client as it is, also one that names a member of every object', async () => {
    const { body } = await startDevice(postern, '', {}, 'constructor');
    const page = await new Browser(postern).identify(issuer, body.user_code, 'jane');
    expect(page.html).toContain('<dd>constructor, it says</dd>');
  });

  it('tell people who may not sign in what to do', async () => {
    const pageOf = async (as: string) => {
      const { body } = await startDevice(postern);
      return new Browser(postern).identify(issuer, body.user_code, as);
    };
    const stranger = await pageOf('stranger');
    expect([stranger.status, textOf(stranger)]).toEqual([403, expect.stringContaining('nowhere')]);
    // An administrator of the console who is in no team.
    const warn = jest.spyOn(Logger.prototype, 'warn');
    const ada = await pageOf('ada');
    expect([ada.status, textOf(ada)]).toEqual([
      403,
      expect.stringMatching(/You are <strong>ada.*Your groups name no team\./s),
    ]);
    expect(warn).toHaveBeenCalledWith(
      expect.stringMatching(/^sso:ada@example\.com may not sign in from a client: .*\["llm-admins"\].*team-/),
    );
    warn.mockRestore();
    expect((await pageOf('hidden')).status).toBe(403);
  });
});

describe('a person', () => {
  it('may have an address that is longer than the name of a key', async () => {
    const [one, two] = [await signedIn(postern, issuer, 'long'), await signedIn(postern, issuer, 'longer')];
    for (const { access } of [one, two]) expect(await statusWith(postern, access)).toBe(200);
  });
});

describe('a sign-in', () => {
  it('is dead on another replica that has used it', async () => {
    const { access, refresh } = await signedIn(postern, issuer);
    for (const one of [postern, replica]) expect(await statusWith(one, access)).toBe(200);
    await postForm(`${postern.url}/oauth/revoke`, { token: refresh });
    await soon(async () => (await statusWith(replica, access)) === 401);
    expect(await renew(replica, refresh)).toMatchObject({ status: 400, error: 'invalid_grant' });
  });

  it('is renewed while an administrator changes what the team allows', async () => {
    const { refresh } = await signedIn(postern, issuer);
    const [key] = await rows<{ id: string; team_id: string }>(
      `SELECT k.id, k.team_id FROM gateway_key k JOIN person p ON p.id = k.person_id WHERE p.subject = 'jane'`,
    );
    const change = new pg.Client({ connectionString: postern.database.url });
    await change.connect();
    try {
      const [{ pid }] = (await change.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows as [
        { pid: number },
      ];
      // As PATCH /teams/:id does it.
      await change.query('BEGIN');
      await change.query('SELECT FROM team WHERE id = $1 FOR UPDATE', [key!.team_id]);
      const renewing = renew(postern, refresh);
      await eventually(async () => {
        const blocked = 'SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))';
        return (await rows(blocked, [pid])).length === 1;
      });
      await change.query('SELECT FROM gateway_key WHERE id = $1 FOR UPDATE', [key!.id]);
      await change.query('COMMIT');
      expect((await renewing).status).toBe(200);
    } finally {
      await change.end();
    }
  });
});

describe('a request for a token', () => {
  it('is rejected with a parameter or a member twice, or with too many', async () => {
    const at = `${postern.url}/oauth/token`;
    const twice = await postForm(at, [
      ['grant_type', 'refresh_token'],
      ['refresh_token', 'a'],
      ['refresh_token', 'b'],
    ]);
    expect([twice.status, twice.text]).toEqual([400, expect.stringContaining('given twice')]);
    const json = await fetch(at, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"grant_type":"refresh_token","refresh_token":"a","refresh_token":"b"}',
    });
    expect([json.status, await json.text()]).toEqual([400, expect.stringContaining('given twice')]);
    const many = await postForm(
      at,
      Array.from({ length: 101 }, () => ['a', ''] as [string, string]),
    );
    expect([many.status, many.text]).toEqual([400, expect.stringContaining('more than 100 parameters')]);
  });
});
