import { createHash, randomBytes } from 'node:crypto';
import { DeviceIdpSecrets, SignInIdpSecrets } from '../../src/identity/sign-in/idp-secrets.service.js';
import { OpenIdProvider } from '../admin/openid-provider.js';
import { CONSOLE } from '../admin/browser.js';
import { runHere } from '../cli/run-here.js';
import { soon } from '../support/eventually.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { unusedPort } from '../support/unused-port.js';
import { Browser, poll, renew, signedIn, signInSettings, startDevice, textOf, USERS } from './device-flow.js';
import { statusWith } from './exchanges.js';

const SELF_SERVICE = { keys_per_user: 3, max_days: 90, budget_usd_per_month: null };

interface Person {
  id: string;
  name: string;
  email: string | null;
  ended_at: string | null;
  live_sign_ins: number;
  spent_refused_at: string | null;
  keys: { id: string; name: string; origin: string }[];
  sign_ins: { id: string; end_reason: string | null }[];
  ended: Record<string, number>;
}

let provider: RawProvider;
let issuer: OpenIdProvider;
let postern: TestGateway;
let replicas: TestGateway[];
beforeAll(async () => {
  for (const level of ['warn', 'info'] as const) jest.spyOn(console, level).mockImplementation(() => {});
  provider = await RawProvider.start((req) => void req.socket.write(answer('200 OK', [], 'reached')));
  const publicUrl = `http://127.0.0.1:${await unusedPort()}`;
  issuer = await OpenIdProvider.start(publicUrl, USERS, { refresh: true });
  const masterKey = randomBytes(32).toString('base64');
  const settings = {
    ...{ PROVIDER_URL: provider.url, MASTER_KEY: masterKey },
    ...signInSettings(issuer, publicUrl),
  };
  postern = await startTestGateway(settings);
  const others = [1, 2].map(() => startTestGateway({ ...settings, PORT: '0' }, postern.database));
  replicas = [postern, ...(await Promise.all(others))];
  await postern.admin('PATCH', '/teams/default', { sign_in: {}, self_service: SELF_SERVICE });
});
afterAll(async () => {
  for (const replica of [...replicas].reverse()) await replica.stop();
  await issuer.stop();
  await provider.stop();
});

const rows = (sql: string, values: unknown[] = []) =>
  postern.database.query<Record<string, unknown>>(sql, values);
const person = (of: string) => postern.admin<Person>('GET', `/people/${encodeURIComponent(of)}`);
const end = (of: string) => postern.admin<Person>('POST', `/people/${encodeURIComponent(of)}/end`, {});
const idOf = async (subject: string) =>
  String((await rows('SELECT id FROM person WHERE subject = $1', [subject]))[0]!.id);

/** Signs in to the console. @returns the page at the end */
async function toConsole(browser: Browser, as: string) {
  const start = await browser.get('/admin/v1/oidc/start');
  return browser.get(await browser.atProvider(issuer, start.headers.get('location')!, as));
}

const session = async (browser: Browser) =>
  (JSON.parse((await browser.get('/admin/v1/session')).html) as { session: { actor: string } | null })
    .session;

/** A key of their own, made in the console. */
async function ownKey(browser: Browser, name: string): Promise<{ status: number; key: string }> {
  const cookie = [...browser.cookies()].map(([one, value]) => `${one}=${value}`).join('; ');
  const headers = consoleHeaders();
  const response = await fetch(`${postern.url}/admin/v1/keys`, {
    method: 'POST',
    headers: { ...headers, cookie },
    body: JSON.stringify({ team: 'default', name }),
  });
  return { status: response.status, ...((await response.json()) as { key: string }) };
}

/** Of a change in the console. */
function consoleHeaders(): Record<string, string> {
  return Object.fromEntries(CONSOLE.map((line) => line.split(': ') as [string, string]));
}

const isDead = (token: string) =>
  Promise.all(replicas.map((replica) => soon(async () => (await statusWith(replica, token)) === 401)));

it('ends everything of a person on every replica, and keeps them out until they are let in again', async () => {
  const browser = new Browser(postern);
  expect((await toConsole(browser, 'jane')).status).toBe(200);
  const { key: own } = await ownKey(browser, 'notebook');
  const one = await signedIn(postern, issuer);
  const two = await signedIn(postern, issuer);
  for (const replica of replicas)
    for (const token of [own, one.access, two.access]) expect(await statusWith(replica, token)).toBe(200);
  const pending = await startDevice(postern);
  const other = new Browser(postern);
  const asked = await other.identify(issuer, pending.body.user_code, 'jane');
  const confirmed = await startDevice(postern);
  await new Browser(postern).signIn(issuer, confirmed.body.user_code, 'jane');
  expect((await person('JANE@example.com')).keys.map(({ name, origin }) => [name, origin])).toEqual([
    ['default/jane@example.com', 'sign_in'],
    ['default/notebook', 'manual'],
  ]);

  const ran = await runHere(['people', 'end', 'jane@example.com', '--yes'], {
    POSTERN_URL: postern.url,
    POSTERN_ADMIN_TOKEN: ADMIN_TOKEN,
  });
  expect(ran).toMatchObject({
    code: 0,
    stdout: 'Ended Jane Doe (jane@example.com). Sessions: 1. Sign-ins: 2. Own keys: 1.\n',
  });
  const from = performance.now();
  await Promise.all([own, one.access, two.access].map(isDead));
  process.stdout.write(
    `a person is gone on three replicas after ${(performance.now() - from).toFixed(0)} ms\n`,
  );
  expect(await session(browser)).toBeNull();
  for (const replica of replicas)
    expect(await renew(replica, one.refresh)).toMatchObject({ status: 400, error: 'invalid_grant' });
  // What was under way, and every other way in.
  expect((await other.confirm(asked, 'approve')).status).toBe(410);
  for (const { body } of [pending, confirmed])
    expect(await poll(postern, body.device_code)).toMatchObject({ status: 400, error: 'invalid_grant' });
  const again = await startDevice(postern);
  const refused = await new Browser(postern).identify(issuer, again.body.user_code, 'jane');
  expect([refused.status, textOf(refused)]).toEqual([403, expect.stringContaining('was ended')]);
  const late = await toConsole(browser, 'jane');
  expect([late.status, late.html]).toEqual([403, expect.stringContaining('Your access was ended')]);
  expect(await session(browser)).toBeNull();
  // Somebody else who was given the address is another person.
  const heir = await signedIn(postern, issuer, 'heir');
  expect(await statusWith(postern, heir.access)).toBe(200);

  // It can be repeated, and is one entry of the audit log.
  const id = await idOf('jane');
  expect((await end(id)).ended).toEqual({ sign_ins: 0, sessions: 0, keys: 0 });
  const { data } = await postern.admin<{ data: object[] }>('GET', `/audit?subject_id=${id}`);
  expect(data).toEqual([
    expect.objectContaining({
      action: 'ended',
      subject_type: 'person',
      after: expect.objectContaining({ ended: { sign_ins: 2, sessions: 1, keys: 1 } }) as unknown,
    }),
  ]);

  // Their sign-ins and sessions are entries of their own.
  const ends = await postern.database.query(
    `SELECT subject_type, count(*)::int FROM audit_log
     WHERE action = 'ended' AND subject_type IN ('sign_in', 'session') GROUP BY 1 ORDER BY 1`,
  );
  expect(ends).toEqual([
    { subject_type: 'session', count: 1 },
    { subject_type: 'sign_in', count: 2 },
  ]);

  await postern.admin('POST', `/people/${id}/reopen`, {});
  const back = await signedIn(postern, issuer);
  expect(await statusWith(postern, back.access)).toBe(200);
  // What was revoked stays so, and what had ended does not work again.
  for (const token of [own, one.access]) expect(await statusWith(postern, token)).toBe(401);
  expect(await renew(postern, one.refresh)).toMatchObject({ status: 400, error: 'invalid_grant' });
  expect((await toConsole(browser, 'jane')).status).toBe(200);
});

it('names a person by an address only if nobody else has it', async () => {
  await signedIn(postern, issuer, 'heir');
  const response = await fetch(`${postern.url}/admin/v1/people/jane%40example.com/end`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
    body: '{}',
  });
  expect([response.status, await response.text()]).toEqual([
    400,
    expect.stringContaining('several people; give the ID'),
  ]);
  const { data } = await postern.admin<{ data: Person[] }>('GET', '/people?search=jane');
  expect(data.map(({ email }) => email)).toEqual(['jane@example.com', 'jane@example.com']);
});

it('lists sign-ins, shows a refresh token that was used before, and ends one', async () => {
  const { access, refresh } = await signedIn(postern, issuer, 'heir');
  await renew(postern, refresh);
  await rows(`UPDATE refresh_token SET used_at = now() - interval '61 seconds' WHERE used_at IS NOT NULL`);
  await renew(postern, refresh);
  const id = await idOf('heir');
  const shown = await person(id);
  expect(shown.spent_refused_at).not.toBeNull();
  // It may be a second terminal: nothing ends by it.
  expect(await statusWith(postern, access)).toBe(200);
  const [newest] = shown.sign_ins;
  const ended = await fetch(`${postern.url}/admin/v1/sign-ins/${newest!.id}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  expect(ended.status).toBe(204);
  await isDead(access);
  expect((await person(id)).sign_ins[0]).toMatchObject({ id: newest!.id, end_reason: 'ended' });
  const left = await postern.admin<{ data: { id: string }[] }>('GET', '/sign-ins?state=active&limit=500');
  expect(left.data.map((one) => one.id)).not.toContain(newest!.id);
});

it.each([
  ['the team is disabled', () => postern.admin('PATCH', '/teams/default', { disabled: true })],
  [
    'the key is revoked',
    async () => {
      const [key] = (await person(await idOf('heir'))).keys.filter(({ origin }) => origin === 'sign_in');
      await postern.admin('POST', `/keys/${key!.id}/revoke`);
    },
  ],
])('has no token on any replica, and gets none, once %s', async (_, change) => {
  const { access, refresh } = await signedIn(postern, issuer, 'heir');
  for (const replica of replicas) expect(await statusWith(replica, access)).toBe(200);
  await change();
  try {
    await isDead(access);
    for (const replica of replicas)
      expect(await renew(replica, refresh)).toMatchObject({ status: 400, error: 'invalid_grant' });
  } finally {
    await postern.admin('PATCH', '/teams/default', { disabled: false });
    await rows(`UPDATE person SET reopened_at = now()`);
  }
});

it('lets members of a team see and end their own sign-ins only', async () => {
  const mine = await signedIn(postern, issuer, 'both', 'default');
  const hers = await signedIn(postern, issuer, 'heir');
  const browser = new Browser(postern);
  expect((await toConsole(browser, 'both')).status).toBe(200);
  const { data } = JSON.parse((await browser.get('/admin/v1/sign-ins')).html) as {
    data: { id: string; person: string }[];
  };
  expect(new Set(data.map((one) => one.person))).toEqual(new Set(['bo@example.com']));
  const cookie = [...browser.cookies()].map(([name, value]) => `${name}=${value}`).join('; ');
  const headers = consoleHeaders();
  const remove = async (id: string) =>
    (
      await fetch(`${postern.url}/admin/v1/sign-ins/${id}`, {
        method: 'DELETE',
        headers: { ...headers, cookie },
      })
    ).status;
  const others = (await person(await idOf('heir'))).sign_ins[0]!.id;
  expect(await remove(others)).toBe(404);
  expect(await remove(data[0]!.id)).toBe(204);
  await isDead(mine.access);
  expect(await statusWith(postern, hers.access)).toBe(200);
  expect((await browser.get('/admin/v1/people')).status).toBe(403);
});

it('creates no key for a person who was ended meanwhile', async () => {
  const browser = new Browser(postern);
  await toConsole(browser, 'unverified');
  expect((await ownKey(browser, 'before')).status).toBe(201);
  // The session of a request that was let in before the end.
  await rows(`UPDATE person SET ended_at = now() WHERE subject = 'unverified'`);
  expect((await ownKey(browser, 'after')).status).toBe(401);
  await rows(`UPDATE person SET ended_at = NULL WHERE subject = 'unverified'`);
});

it('has no token that works in a dump of the database, and no token of the provider', async () => {
  const { access, refresh, device } = await signedIn(postern, issuer, 'heir');
  const confirmed = await startDevice(postern);
  const browser = new Browser(postern);
  const page = await browser.identify(issuer, confirmed.body.user_code, 'heir');
  const secrets = [access, refresh, device, confirmed.body.device_code, confirmed.body.user_code];
  secrets.push(browser.cookies().get('postern_device')!);
  await browser.confirm(page, 'approve');
  const app = postern.gateway.app;
  for (const [table, sealed] of [
    ['sign_in', app.get(SignInIdpSecrets)],
    ['device_request', app.get(DeviceIdpSecrets)],
  ] as const) {
    const found = await rows(`SELECT id, idp_refresh FROM ${table} WHERE idp_refresh IS NOT NULL`);
    expect([table, found.length]).not.toEqual([table, 0]);
    secrets.push(...found.map((row) => sealed.open(String(row.id), row.idp_refresh as Buffer)));
  }
  const code = confirmed.body.user_code.replace('-', '');
  // There are few codes: a plain digest would be one of a list.
  const guessed = createHash('sha256').update(code).digest('hex');
  for (const table of ['gateway_key_secret', 'refresh_token', 'device_request', 'sign_in', 'admin_session']) {
    const dump = JSON.stringify(await rows(`SELECT t::text AS row FROM ${table} t`));
    // bytea is shown as hexadecimal digits.
    for (const secret of [...secrets, code])
      for (const text of [secret, Buffer.from(secret).toString('hex')]) expect(dump).not.toContain(text);
    expect(dump).not.toContain(guessed);
  }
});
