import { CONSOLE } from '../admin/browser.js';
import { OpenIdProvider } from '../admin/openid-provider.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { unusedPort } from '../support/unused-port.js';
import { Browser, signedIn, signInSettings, startDevice, USERS } from './device-flow.js';
import { postForm, statusWith } from './exchanges.js';
import { HeldLocks } from './held-locks.js';

const MEMBER = { groups: ['team-default'], email_verified: true };
const ADMIN = { groups: ['llm-admins', 'team-default'], email_verified: true };

let provider: RawProvider;
let issuer: OpenIdProvider;
let postern: TestGateway;
beforeAll(async () => {
  for (const level of ['warn', 'info'] as const) jest.spyOn(console, level).mockImplementation(() => {});
  provider = await RawProvider.start((req) => void req.socket.write(answer('200 OK', [], 'reached')));
  const publicUrl = `http://127.0.0.1:${await unusedPort()}`;
  issuer = await OpenIdProvider.start(publicUrl, USERS, { refresh: true });
  postern = await startTestGateway({ PROVIDER_URL: provider.url, ...signInSettings(issuer, publicUrl) });
  const selfService = { keys_per_user: 3, max_days: 90, budget_usd_per_month: null };
  await postern.admin('PATCH', '/teams/default', { sign_in: {}, self_service: selfService });
});
afterAll(async () => {
  await postern.stop();
  await issuer.stop();
  await provider.stop();
});

const rows = (sql: string, values: unknown[] = []) =>
  postern.database.query<Record<string, unknown>>(sql, values);
const idOf = async (subject: string) =>
  String((await rows('SELECT id FROM person WHERE subject = $1', [subject]))[0]!.id);
const end = (id: string) => postern.admin('POST', `/people/${id}/end`, {});
const forget = (id: string) => postern.admin<{ name: string }>('POST', `/people/${id}/forget`, {});
const aliasOf = (id: string) => `forgotten-${id.slice(-12)}`;

/** A browser in which somebody is signed in to the console. */
async function inConsole(as: string): Promise<Browser> {
  const browser = new Browser(postern);
  const start = await browser.get('/admin/v1/oidc/start');
  const page = await browser.get(await browser.atProvider(issuer, start.headers.get('location')!, as));
  expect(page.status).toBe(200);
  return browser;
}

/** A change in the console. */
async function change(browser: Browser, path: string, body: object): Promise<number> {
  const cookie = [...browser.cookies()].map(([one, value]) => `${one}=${value}`).join('; ');
  const headers = Object.fromEntries(CONSOLE.map((line) => line.split(': ') as [string, string]));
  const request = { method: 'POST', headers: { ...headers, cookie }, body: JSON.stringify(body) };
  const response = await fetch(`${postern.url}/admin/v1${path}`, request);
  await response.text();
  return response.status;
}

/** Entries of the audit log that have a text. */
const entriesWith = (text: string) =>
  rows('SELECT a::text AS entry FROM audit_log a WHERE strpos(a::text, $1) > 0', [text]);

it('forgets the name and address of a person who was ended, wherever they stand', async () => {
  const leaver = { ...MEMBER, name: 'Lea Verschwunden' };
  // With another address at first.
  USERS.leaver = { ...leaver, email: 'lena@example.com' };
  const { access: earlier } = await signedIn(postern, issuer, 'leaver');
  expect(await statusWith(postern, earlier)).toBe(200);
  await soonStored('sso:lena@example.com');
  USERS.leaver = { ...leaver, email: 'lea@example.com' };
  expect(await change(await inConsole('leaver'), '/keys', { team: 'default', name: 'last' })).toBe(201);
  const { access } = await signedIn(postern, issuer, 'leaver');
  expect(await statusWith(postern, access)).toBe(200);
  await soonStored('sso:lea@example.com');
  const id = await idOf('leaver');
  await expect(forget(id)).rejects.toThrow(/409 .*end them first/);
  await end(id);
  const alert = `INSERT INTO webhook_event (id, type, data)
    SELECT gen_random_uuid(), 'budget.threshold', jsonb_build_object('key', name, 'key_id', id, 'threshold', 80)
    FROM gateway_key WHERE name IN ('lena@example.com', 'lea@example.com') RETURNING id`;
  expect(await rows(alert)).toHaveLength(1);
  const [old] = await rows(alert);
  // One that is being deleted is not waited for.
  const locks = await HeldLocks.in(postern.database);
  await locks.other.query('BEGIN');
  await locks.other.query('DELETE FROM webhook_event WHERE id = $1', [old!.id]);
  await forget(id);
  await locks.other.query('COMMIT');
  await locks.end();
  const [stored] = await rows('SELECT data FROM webhook_event');
  expect(stored!.data).toEqual({
    key: expect.stringMatching(/^forgotten-/) as string,
    ...{ key_id: expect.any(String) as string, threshold: 80 },
  });
  // Stored late, by a gateway that could not reach Postgres.
  await rows(`UPDATE request_log SET subject = 'sso:lea@example.com' WHERE subject = $1`, [aliasOf(id)]);
  await forget(id);
  for (const table of [
    'person',
    'gateway_key',
    'gateway_key_secret',
    'request_log',
    'audit_log',
    'sign_in',
    'webhook_event',
  ]) {
    const found = await rows(
      `SELECT t::text AS row FROM ${table} t WHERE t::text ~* 'le(n)?a@example|Verschwunden'`,
    );
    expect([table, found]).toEqual([table, []]);
  }
  // They stay out, whatever they are called now.
  const again = await startDevice(postern);
  expect((await new Browser(postern).identify(issuer, again.body.user_code, 'leaver')).status).toBe(403);
});

describe.each([
  ['last to first', ['last', 'next', 'first']],
  ['first to last', ['first', 'next', 'last']],
])('people who had one address after the other, forgotten from the %s', (order, forgotten) => {
  it('leaves what the others did', async () => {
    const address = `${order.replaceAll(' ', '-')}@example.com`;
    const person = (one: string) => `${one} of ${order}`;
    const signIn = (one: string, email: string) => {
      USERS[person(one)] = { ...MEMBER, email };
      return signedIn(postern, issuer, person(one));
    };
    // Each but the last had another one after it.
    await signIn('first', address);
    await signIn('first', `a-${address}`);
    await signIn('next', address);
    await signIn('next', `b-${address}`);
    await signIn('last', address);
    const created = (one: string) =>
      rows(
        `SELECT a.actor, a.client_ip IS NOT NULL AS located FROM audit_log a JOIN gateway_key k ON k.id = a.subject_id
         JOIN person p ON p.id = k.person_id WHERE p.subject = $1 AND a.action = 'created'`,
        [person(one)],
      );
    const expected = new Map(forgotten.map((one) => [one, [{ actor: `sso:${address}`, located: true }]]));
    for (const one of forgotten) {
      const id = await idOf(person(one));
      await end(id);
      await forget(id);
      expected.set(one, [{ actor: `sso:${aliasOf(id)}`, located: false }]);
      const found = await Promise.all(forgotten.map(async (name) => [name, await created(name)] as const));
      expect(new Map(found)).toEqual(expected);
    }
  });
});

it('leaves what somebody did whose own keys show that they had the address meanwhile', async () => {
  const sharer = { ...MEMBER, email: 'console@example.com' };
  USERS.before = sharer;
  await signedIn(postern, issuer, 'before');
  USERS.before = { ...MEMBER, email: 'before@example.com' };
  await inConsole('before');
  USERS.after = sharer;
  const own = { team: 'default', name: 'of the console' };
  expect(await change(await inConsole('after'), '/keys', own)).toBe(201);
  USERS.after = { ...MEMBER, email: 'after@example.com' };
  await inConsole('after');
  const id = await idOf('before');
  await end(id);
  await forget(id);
  const created = await rows(
    `SELECT actor FROM audit_log WHERE action = 'created' AND subject_name = 'default/of the console'`,
  );
  expect(created).toEqual([{ actor: 'sso:console@example.com' }]);
});

it('forgets a person whatever their name is', async () => {
  USERS.colon = { ...MEMBER, email: 'co@example.com', name: ':' };
  await signedIn(postern, issuer, 'colon');
  const id = await idOf('colon');
  await end(id);
  const { name } = await forget(id);
  expect(name).toMatch(/^forgotten-/);
  const found = await rows(
    `
    SELECT FROM audit_log WHERE subject_id = $1 AND (before->>'name' = ':' OR after->>'name' = ':')`,
    [id],
  );
  expect(found).toEqual([]);
});

async function soonStored(subject: string): Promise<void> {
  await eventually(
    async () => (await rows('SELECT FROM request_log WHERE subject = $1', [subject])).length > 0,
  );
}

it('forgets somebody who ended themselves', async () => {
  USERS.quitter = { ...ADMIN, email: 'quitter@example.com' };
  const browser = await inConsole('quitter');
  await signedIn(postern, issuer, 'quitter');
  const id = await idOf('quitter');
  expect(await change(browser, `/people/${id}/end`, {})).toBe(200);
  await forget(id);
  expect(await entriesWith('quitter@example.com')).toEqual([]);
  const theirs = await rows(
    `SELECT action || ' ' || subject_type AS what, client_ip FROM audit_log WHERE actor = $1 AND action = 'ended'
     ORDER BY 1`,
    [`sso:${aliasOf(id)}`],
  );
  const what = ['ended person', 'ended session', 'ended sign_in'];
  expect(theirs).toEqual(what.map((one) => ({ what: one, client_ip: null })));
});

it('forgets where somebody was who ended a token or signed out', async () => {
  USERS.remote = { ...MEMBER, email: 'remote@example.com' };
  const headers = { 'x-forwarded-for': '198.51.100.7' };
  const { access, refresh } = await signedIn(postern, issuer, 'remote');
  for (const token of [access, refresh]) await postForm(`${postern.url}/oauth/revoke`, { token }, headers);
  const id = await idOf('remote');
  const located = `SELECT subject_type FROM audit_log WHERE host(client_ip) = '198.51.100.7' ORDER BY 1`;
  expect(await rows(located)).toEqual([{ subject_type: 'issued_token' }, { subject_type: 'sign_in' }]);
  await end(id);
  await forget(id);
  expect(await rows(located)).toEqual([]);
});

it('leaves entries of others who have the same name', async () => {
  const name = 'Jane Doe';
  USERS.one = { ...ADMIN, email: 'one@example.com', name };
  USERS.two = { ...MEMBER, email: 'two@example.com', name };
  for (const user of ['one', 'one', 'two', 'two']) await signedIn(postern, issuer, user);
  const [one, two] = [await idOf('one'), await idOf('two')];
  const signInsOf = async (id: string) =>
    (await rows('SELECT id FROM sign_in WHERE person_id = $1', [id])).map((row) => String(row.id));
  const theirs = await signInsOf(one);
  const all = [...theirs, ...(await signInsOf(two))];
  for (const id of all) await postern.admin('DELETE', `/sign-ins/${id}`);
  // As long after its end.
  await rows('DELETE FROM sign_in WHERE id = $1', [theirs[0]]);
  // As an earlier checkout recorded it.
  await rows(`UPDATE audit_log SET before = before - 'person_id' WHERE subject_id = $1`, [theirs[1]]);
  expect(await change(await inConsole('one'), `/people/${two}/end`, {})).toBe(200);
  await end(one);
  await forget(one);
  const names = await rows(
    `SELECT subject_type, subject_name, before->>'name' AS before, count(*)::int FROM audit_log
     WHERE subject_id = ANY ($1) AND action = 'ended' GROUP BY 1, 2, 3 ORDER BY 1, 2`,
    [[one, two, ...all]],
  );
  const alias = aliasOf(one);
  expect(names).toEqual([
    { subject_type: 'person', subject_name: name, before: null, count: 1 },
    { subject_type: 'person', subject_name: alias, before: null, count: 1 },
    { subject_type: 'sign_in', subject_name: name, before: name, count: 2 },
    { subject_type: 'sign_in', subject_name: alias, before: alias, count: 2 },
  ]);
});

it('leaves addresses of others that end or begin with the address', async () => {
  USERS.ann = { ...ADMIN, email: 'ann@x.example' };
  await signedIn(postern, issuer, 'ann');
  const others = ['joann@x.example', "o'ann@x.example", 'jo-ann@x.example', 'ann@x.example.org'];
  for (const email of others) {
    USERS[email] = { ...MEMBER, email };
    await signedIn(postern, issuer, email);
  }
  const browser = await inConsole('ann');
  for (const email of others) expect(await change(browser, `/people/${await idOf(email)}/end`, {})).toBe(200);
  const id = await idOf('ann');
  const [key] = await rows('SELECT id FROM gateway_key WHERE person_id = $1', [id]);
  await postern.admin('PATCH', `/keys/${String(key!.id)}`, { note: 'Ask:\nann@x.example. Or not.' });
  await end(id);
  await forget(id);
  const [note] = await rows(
    `SELECT after->>'note' AS note FROM audit_log WHERE subject_id = $1 AND after ? 'note' AND action = 'changed'`,
    [key!.id],
  );
  expect(note).toEqual({ note: `Ask:\n${aliasOf(id)}. Or not.` });
  const left = await rows(
    `SELECT DISTINCT found[1] AS address FROM audit_log a, regexp_matches(a::text, '[[:alnum:].''-]*ann@x[.[:alnum:]]*', 'g') AS found
     ORDER BY 1`,
  );
  expect(left.map(({ address }) => address)).toEqual([...others].sort());
  const ended = await rows(
    `SELECT subject_name FROM audit_log WHERE actor = $1 AND action = 'ended' AND subject_type = 'person'`,
    [`sso:${aliasOf(id)}`],
  );
  expect(ended.map((one) => one.subject_name).sort()).toEqual([...others].sort());
});

it('forgets an address whose JSON has escapes', async () => {
  USERS.quoted = { ...MEMBER, email: '"lea lost"@example.com' };
  await signedIn(postern, issuer, 'quoted');
  const id = await idOf('quoted');
  await end(id);
  await forget(id);
  expect(await entriesWith('lea lost')).toEqual([]);
});
