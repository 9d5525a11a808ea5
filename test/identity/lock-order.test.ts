import { CONSOLE } from '../admin/browser.js';
import type { Grant } from '../../src/auth/caller.js';
import { KeyUseService } from '../../src/auth/key-use.service.js';
import { OpenIdProvider } from '../admin/openid-provider.js';
import { insertRow } from '../request-log/rows.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { unusedPort } from '../support/unused-port.js';
import { HeldLocks, type Statement } from './held-locks.js';
import { Browser, refreshOf, signedIn, signInSettings, startDevice, USERS } from './device-flow.js';

let provider: RawProvider;
let issuer: OpenIdProvider;
let postern: TestGateway;
let locks: HeldLocks;
beforeAll(async () => {
  for (const level of ['warn', 'info'] as const) jest.spyOn(console, level).mockImplementation(() => {});
  provider = await RawProvider.start((req) => void req.socket.write(answer('200 OK', [], 'reached')));
  const publicUrl = `http://127.0.0.1:${await unusedPort()}`;
  issuer = await OpenIdProvider.start(publicUrl, USERS, { refresh: true });
  postern = await startTestGateway({ PROVIDER_URL: provider.url, ...signInSettings(issuer, publicUrl) });
  await postern.admin('PATCH', '/teams/default', {
    sign_in: {},
    self_service: { keys_per_user: 20, max_days: 90, sign_in_within_days: 30 },
  });
  locks = await HeldLocks.in(postern.database);
});
afterAll(async () => {
  await locks.end();
  await postern.stop();
  await issuer.stop();
  await provider.stop();
});

const between: HeldLocks['between'] = (...asked) => locks.between(...asked);

const one = async (sql: string, values: unknown[] = []) => {
  const [row] = await postern.database.query<Record<string, string>>(sql, values);
  return row!;
};
const lock = (table: string, id: string): Statement => [
  `SELECT FROM ${table} WHERE id = $1 FOR NO KEY UPDATE`,
  [id],
];
/** Counts a change of keys. */
const changeKey = (id: string): Statement => [
  'UPDATE gateway_key SET disabled = disabled WHERE id = $1',
  [id],
];
const endPerson = (id: string) => () =>
  postern.admin<{ ended: object }>('POST', `/people/${id}/end`, {}).then(({ ended }) => ended);

let people = 0;

/** A person with a session of the console, a sign-in, and own keys, the first of which has the last name. */
async function leaver() {
  const subject = `leaver-${++people}`;
  USERS[subject] = { groups: ['team-default'], email: `${subject}@example.com`, email_verified: true };
  const browser = new Browser(postern);
  const toConsole = async () => {
    const start = await browser.get('/admin/v1/oidc/start');
    return browser.get(await browser.atProvider(issuer, start.headers.get('location')!, subject));
  };
  expect((await toConsole()).status).toBe(200);
  const cookie = [...browser.cookies()].map(([name, value]) => `${name}=${value}`).join('; ');
  const keys: string[] = [];
  for (const name of [`z of ${subject}`, `a of ${subject}`]) {
    const response = await fetch(`${postern.url}/admin/v1/keys`, {
      method: 'POST',
      headers: { ...Object.fromEntries(CONSOLE.map((line) => line.split(': ') as [string, string])), cookie },
      body: JSON.stringify({ team: 'default', name }),
    });
    expect(response.status).toBe(201);
    keys.push(((await response.json()) as { id: string }).id);
  }
  await signedIn(postern, issuer, subject);
  const { id } = await one('SELECT id FROM person WHERE subject = $1', [subject]);
  const signIn = await one('SELECT id, key_id FROM sign_in WHERE person_id = $1', [id]);
  // It is behind the other one now, however Postgres reads them.
  await postern.database.query(
    `UPDATE gateway_key SET latest_expiry = latest_expiry + interval '1 hour' WHERE id = $1`,
    [keys[0]],
  );
  return {
    ...{ id: id!, subject, toConsole, signIn: signIn.id!, signInKey: signIn.key_id! },
    keys: keys as [string, string],
  };
}

describe('a person is ended', () => {
  const all = { sign_ins: 1, sessions: 1, keys: 2 };

  it('while one of their keys is changed', async () => {
    const { id, keys } = await leaver();
    expect(await between(lock('gateway_key', keys[0]), endPerson(id), [changeKey(keys[0])])).toEqual(all);
  });

  it('while the last use of their keys is written', async () => {
    const { id, keys } = await leaver();
    const ended = await between(lock('gateway_key', keys[0]), endPerson(id), [lock('gateway_key', keys[1])]);
    expect(ended).toEqual(all);
  });

  it('while one of their sign-ins ends', async () => {
    const { id, signIn } = await leaver();
    const end: Statement = ['UPDATE sign_in SET ended_at = now() WHERE id = $1', [signIn]];
    await between(lock('sign_in', signIn), endPerson(id), [end]);
  });
});

it('a person signs in to the console while the last use of their keys is written', async () => {
  const { keys, toConsole } = await leaver();
  const page = await between(lock('gateway_key', keys[0]), toConsole, [lock('gateway_key', keys[1])]);
  expect(page.status).toBe(200);
});

it('what members may create is changed while the last use of their keys is written', async () => {
  const { keys } = await leaver();
  const change = () =>
    postern.admin('PATCH', '/teams/default', {
      self_service: { keys_per_user: 20, max_days: 90, sign_in_within_days: 30 - people },
    });
  await between(lock('gateway_key', keys[0]), change, [lock('gateway_key', keys[1])]);
});

it('the provider ends the session of a person while they are ended', async () => {
  const { id, subject, signIn } = await leaver();
  const { sid } = await one('SELECT idp_sid AS sid FROM sign_in WHERE id = $1', [signIn]);
  const logout = async () => {
    const body = new URLSearchParams({ logout_token: await issuer.logoutToken({ sub: subject, sid }) });
    return (await fetch(`${postern.url}/admin/v1/oidc/logout`, { method: 'POST', body })).status;
  };
  await postern.database.query('UPDATE admin_session SET idp_sid = $1 WHERE user_id LIKE $2', [
    sid,
    `%#${subject}`,
  ]);
  const sessions: Statement = [
    'SELECT FROM admin_session WHERE user_id LIKE $1 FOR UPDATE',
    [`%#${subject}`],
  ];
  expect(await between(lock('sign_in', signIn), logout, [sessions])).toBe(200);
  expect(await one('SELECT ended_at IS NOT NULL AS ended FROM sign_in WHERE id = $1', [signIn])).toEqual({
    ended: true,
  });
  expect(await endPerson(id)()).toMatchObject({ sign_ins: 0, sessions: 0 });
});

it('a person is confirmed a second time while their first confirmation is sent', async () => {
  const { id, subject } = await leaver();
  const { body } = await startDevice(postern);
  const browser = new Browser(postern);
  await browser.identify(issuer, body.user_code, subject);
  const { id: request } = await one('SELECT id FROM device_request WHERE person_id = $1 AND state = $2', [
    id,
    'pending',
  ]);
  const page = await browser.post('/device', { user_code: body.user_code });
  const callback = await browser.atProvider(issuer, refreshOf(page), subject);
  const back = await between(lock('device_request', request!), () => browser.get(callback), [
    lock('person', id),
  ]);
  expect(back.status).toBe(200);
});

describe('a team is changed', () => {
  it('with what its keys of sign-ins allow, while one of these is changed', async () => {
    const { signInKey } = await leaver();
    const change = () =>
      postern.admin('PATCH', '/teams/default', {
        sign_in: { budget_usd_per_month: '7' },
        models: ['m*'],
        limits: { requests_per_minute: 600 },
      });
    await between(lock('gateway_key', signInKey), change, [
      changeKey(signInKey),
      [
        `INSERT INTO limit_rule (id, scope, scope_id, resource, period, amount)
         VALUES (gen_random_uuid(), 'key', $1, 'tokens', 'minute', 5)`,
        [signInKey],
      ],
    ]);
  });
});

it('changes of keys and of their limits are counted in one order, whichever is made first', async () => {
  const { keys } = await leaver();
  const limits = { requests_per_minute: 9 };
  const count = await one(`SELECT value FROM change_counter WHERE name = 'limits'`);
  const { other } = locks;
  await other.query('BEGIN');
  await other.query(`SELECT FROM change_counter WHERE name = 'keys' FOR UPDATE`);
  const created = postern.admin('POST', '/keys', { team: 'default', name: 'limited', limits });
  await eventually(async () => (await locks.waiting()) >= 1);
  const changed = postern.admin('PATCH', `/keys/${keys[0]}`, { disabled: true, limits });
  await eventually(async () => (await locks.waiting()) >= 2);
  await other.query('COMMIT');
  await Promise.all([created, changed]);
  const { value } = await one(`SELECT value FROM change_counter WHERE name = 'limits'`);
  expect(Number(value)).toBe(Number(count.value) + 2);
});

it('a person who is let in again meanwhile is not forgotten, and none of their rows is changed', async () => {
  const { id, subject, signInKey } = await leaver();
  const name = `sso:${subject}@example.com`;
  await insertRow(postern.database, new Date(), { key_id: signInKey, subject: name });
  await endPerson(id)();
  const reopen: Statement = ['UPDATE person SET ended_at = NULL WHERE id = $1', [id]];
  const forget = () => postern.admin('POST', `/people/${id}/forget`, {});
  await expect(between(reopen, forget, [])).rejects.toThrow(/409 .*can still sign in/);
  const rows = 'SELECT count(*)::int FROM request_log WHERE subject = $1';
  expect(await one(rows, [name])).toEqual({ count: 1 });
});

it('the last use of secrets is written while their key is rotated', async () => {
  const { id } = await postern.admin<{ id: string }>('POST', '/keys', { team: 'default', name: 'rotated' });
  await postern.admin('POST', `/keys/${id}/rotate`, { grace_seconds: 600 });
  const use = postern.gateway.app.get(KeyUseService);
  await use.write();
  const secrets = await postern.database.query<{ id: string; last_used_at: Date | null }>(
    'SELECT id FROM gateway_key_secret WHERE key_id = $1 ORDER BY id',
    [id],
  );
  const [older, newer] = secrets.map((secret) => secret.id) as [string, string];
  // It is behind the other one now where Postgres reads all of them.
  await postern.database.query('UPDATE gateway_key_secret SET prefix = prefix WHERE id = $1', [older]);
  const write = () => {
    // The newer one first. In the same tick: it is also written from time to time.
    for (const secretId of [newer, older]) use.note({ secretId, kind: 'key' } as Grant);
    return use.write();
  };
  await between(lock('gateway_key_secret', older), write, [lock('gateway_key_secret', newer)]);
  const unused = 'SELECT count(*)::int FROM gateway_key_secret WHERE key_id = $1 AND last_used_at IS NULL';
  expect(await one(unused, [id])).toEqual({ count: 0 });
});

describe('while the last use of tokens is written', () => {
  /** The tokens, the older one last where Postgres reads all of them: also by an index, because one has changed. */
  async function tokensOf(column: 'key_id' | 'trust_id', id: string): Promise<[string, string]> {
    const tokens = await postern.database.query<{ id: string }>(
      `SELECT id FROM gateway_key_secret WHERE ${column} = $1 ORDER BY id`,
      [id],
    );
    const [older, newer] = tokens.map((token) => token.id);
    await postern.database.query(
      `UPDATE gateway_key_secret SET expires_at = expires_at + interval '1 minute' WHERE id = $1`,
      [older],
    );
    return [older!, newer!];
  }

  it('their trust is removed', async () => {
    const { id: key_id } = await postern.admin<{ id: string }>('POST', '/keys', {
      team: 'default',
      name: 'ci',
    });
    const { id } = await postern.admin<{ id: string }>('POST', '/trusts', {
      ...{ name: 'job', key: key_id, issuer: issuer.url, audience: 'gateway', claims: { sub: ['job'] } },
    });
    await postern.database.query(
      `INSERT INTO gateway_key_secret (id, key_id, digest, prefix, expires_at, kind, subject, trust_id)
       SELECT gen_random_uuid(), $1, sha256(n::text::bytea), 'ptn_', now() + interval '1 hour', 'exchange', 'job', $2
       FROM generate_series(1, 2) n`,
      [key_id, id],
    );
    const [older, newer] = await tokensOf('trust_id', id);
    const remove = () => postern.admin('DELETE', `/trusts/${id}`);
    await between(lock('gateway_key_secret', older), remove, [lock('gateway_key_secret', newer)]);
    const tokens = 'SELECT count(*)::int FROM gateway_key_secret WHERE trust_id = $1';
    expect(await one(tokens, [id])).toEqual({ count: 0 });
  });

  it('their person is forgotten', async () => {
    const { id, subject, signInKey } = await leaver();
    await signedIn(postern, issuer, subject);
    await endPerson(id)();
    const [older, newer] = await tokensOf('key_id', signInKey);
    const forget = () => postern.admin('POST', `/people/${id}/forget`, {});
    await between(lock('gateway_key_secret', older), forget, [lock('gateway_key_secret', newer)]);
  });
});
