import pg from 'pg';
import { OpenIdProvider } from '../admin/openid-provider.js';
import { CONSOLE } from '../admin/browser.js';
import { AlertScan } from '../../src/webhooks/alert-scan.service.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { unusedPort } from '../support/unused-port.js';
import { Browser, signedIn, signInSettings, USERS } from './device-flow.js';
import { statusWith } from './exchanges.js';

const DAY_MS = 86_400_000;
const RULE = { keys_per_user: 20, max_days: 90, sign_in_within_days: 14 };

interface Key {
  id: string;
  key: string;
  expires_at: string;
  latest_expiry: string | null;
  version: number;
}

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
    OIDC_LEAD_PREFIX: 'lead-',
    ...signInSettings(issuer, publicUrl),
  });
  await postern.admin('PATCH', '/teams/default', { sign_in: {} });
});
afterAll(async () => {
  await postern.stop();
  await issuer.stop();
  await provider.stop();
});
beforeEach(() => allow(RULE));

const allow = (rule: object | null) => postern.admin('PATCH', '/teams/default', { self_service: rule });
const read = (id: string) => postern.admin<Key>('GET', `/keys/${id}`);
/** As if the owner had signed in so many days ago. */
const age = (id: string, days: number) =>
  postern.database.query(
    'UPDATE gateway_key SET expires_at = expires_at - make_interval(days => $2) WHERE id = $1',
    [id, days],
  );
const inDays = (at: string | null) => Math.round(((Date.parse(at ?? '') - Date.now()) / DAY_MS) * 100) / 100;

async function toConsole(as: string): Promise<Record<string, string>> {
  const browser = new Browser(postern);
  const start = await browser.get('/admin/v1/oidc/start');
  const page = await browser.get(await browser.atProvider(issuer, start.headers.get('location')!, as));
  if (page.status !== 200) throw new Error(`${page.status}`);
  const cookie = [...browser.cookies()].map(([name, value]) => `${name}=${value}`).join('; ');
  return {
    ...Object.fromEntries(CONSOLE.map((line) => line.split(': ') as [string, string])),
    cookie,
  };
}

const withToken = (token: string) => ({
  authorization: `Bearer ${token}`,
  'content-type': 'application/json',
});

let names = 0;

/** A key that its owner creates. */
async function own(headers: Record<string, string>, body: object = {}): Promise<Key> {
  const response = await fetch(`${postern.url}/admin/v1/keys`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ team: 'default', name: `own ${++names}`, ...body }),
  });
  const key = (await response.json()) as Key;
  if (response.status !== 201) throw new Error(JSON.stringify(key));
  return key;
}

it('works so many days after a sign-in, and is never extended past its own end', async () => {
  const jane = await toConsole('jane');
  const key = await own(jane);
  expect([inDays(key.expires_at), inDays(key.latest_expiry)]).toEqual([14, 90]);
  const short = await own(jane, { expires_at: new Date(Date.now() + 2 * DAY_MS).toISOString() });
  expect([inDays(short.expires_at), inDays(short.latest_expiry)]).toEqual([2, 2]);

  expect(await statusWith(postern, key.key)).toBe(200);
  for (const { id } of [key, short]) await age(id, 15);
  await eventually(async () => (await statusWith(postern, key.key)) === 401);
  // Neither somebody else's sign-in nor that of whoever has their address.
  for (const other of ['both', 'heir', 'unverified']) await toConsole(other).catch(() => null);
  expect(await statusWith(postern, key.key)).toBe(401);

  await toConsole('jane');
  await eventually(async () => (await statusWith(postern, key.key)) === 200);
  const after = await Promise.all([read(key.id), read(short.id)]);
  expect(after.map(({ expires_at }) => inDays(expires_at))).toEqual([14, 2]);
  expect(after[0].latest_expiry).toBe(key.latest_expiry);
});

it('a sign-in from a client is one too', async () => {
  const key = await own(await toConsole('jane'));
  await age(key.id, 15);
  await eventually(async () => (await statusWith(postern, key.key)) === 401);
  await signedIn(postern, issuer);
  await eventually(async () => (await statusWith(postern, key.key)) === 200);
  expect(inDays((await read(key.id)).expires_at)).toBe(14);
});

it('is extended in the teams of its owner only: who has left one does not keep its key by staying in another', async () => {
  await postern.admin('POST', '/teams', { name: 'research', self_service: RULE });
  const bo = await toConsole('both');
  const [stays, left] = [await own(bo), await own(bo, { team: 'research' })];
  const { groups } = USERS.both!;
  USERS.both!.groups = ['team-default'];
  try {
    for (const signIn of [() => toConsole('both'), () => signedIn(postern, issuer, 'both')]) {
      for (const { id } of [stays, left]) await age(id, 15);
      await signIn();
      await eventually(async () => (await statusWith(postern, stays.key)) === 200);
      expect(inDays((await read(left.id)).expires_at)).toBeLessThan(0);
      expect(await statusWith(postern, left.key)).toBe(401);
    }
  } finally {
    USERS.both!.groups = groups;
  }
  // Back again; the team lets nobody sign in from a client.
  await signedIn(postern, issuer, 'both');
  await eventually(async () => (await statusWith(postern, left.key)) === 200);
});

it('holds for keys that are being created when it is set', async () => {
  await allow({ ...RULE, sign_in_within_days: null });
  const jane = await toConsole('jane');
  const client = new pg.Client({ connectionString: postern.database.url });
  await client.connect();
  try {
    await client.query(`BEGIN; SELECT FROM team WHERE name = 'default' FOR UPDATE`);
    const creating = own(jane).catch((error: Error) => error.message);
    await postern.database.find(
      `SELECT 1 FROM pg_stat_activity
       WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%FROM team WHERE id%FOR UPDATE'`,
    );
    await client.query(
      `UPDATE team SET self_service = self_service || '{"sign_in_within_days": 14}' WHERE name = 'default'; COMMIT`,
    );
    expect(await creating).toContain('"field":"team"');
  } finally {
    await client.end();
  }
  expect((await own(jane)).latest_expiry).not.toBeNull();
});

it('is set while a key is being changed: the two wait for each other in one order', async () => {
  const key = await own(await toConsole('jane'));
  const client = new pg.Client({ connectionString: postern.database.url });
  await client.connect();
  try {
    await client.query(`BEGIN; SELECT FROM gateway_key WHERE id = '${key.id}' FOR UPDATE`);
    const setting = allow({ ...RULE, sign_in_within_days: 5 }).catch((error: Error) => error.message);
    await postern.database.find(
      `SELECT 1 FROM pg_stat_activity
       WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%UPDATE gateway_key%latest_expiry%'`,
    );
    await client.query(`UPDATE gateway_key SET disabled = true WHERE id = '${key.id}'; COMMIT`);
    expect(await setting).toMatchObject({ self_service: { sign_in_within_days: 5 } });
  } finally {
    await client.end();
  }
  expect(inDays((await read(key.id)).expires_at)).toBe(5);
});

it('holds for keys that there are, and for no others', async () => {
  await allow({ ...RULE, sign_in_within_days: null });
  const jane = await toConsole('jane');
  const key = await own(jane);
  expect([inDays(key.expires_at), key.latest_expiry]).toEqual([90, null]);
  const older = await own(jane);
  await postern.database.query('UPDATE gateway_key SET owner_id = NULL WHERE id = $1', [older.id]);
  const ofAdmin = await postern.admin<Key>('POST', '/keys', {
    team: 'default',
    name: `of all ${++names}`,
    expires_at: key.expires_at,
  });
  const { token } = await postern.admin<{ token: string }>('POST', '/tokens', {
    name: 'program',
    role: 'team',
    teams: ['default'],
  });
  const ofToken = await own(withToken(token));

  await allow({ ...RULE, sign_in_within_days: 7 });
  const ends = async () => {
    const all = await Promise.all([key, older, ofAdmin, ofToken].map(({ id }) => read(id)));
    return all.map(({ expires_at }) => inDays(expires_at));
  };
  expect(await ends()).toEqual([7, 7, 90, 90]);
  expect((await read(key.id)).version).toBe(key.version + 1);
  expect((await own(withToken(token))).latest_expiry).toBeNull();
  // Another change of the team is none of the keys.
  await allow({ ...RULE, keys_per_user: 21, sign_in_within_days: 7 });
  expect((await read(key.id)).version).toBe(key.version + 1);
  // A longer time begins with the next sign-in, and so does the end of the rule.
  await allow({ ...RULE, sign_in_within_days: 20 });
  expect(await ends()).toEqual([7, 7, 90, 90]);
  await toConsole('jane');
  expect(await ends()).toEqual([20, 20, 90, 90]);
  await allow(null);
  expect(await ends()).toEqual([20, 20, 90, 90]);
  await toConsole('jane');
  expect(await ends()).toEqual([90, 90, 90, 90]);
});

it('a person who was ended extends nothing', async () => {
  const key = await own(await toConsole('both'));
  await postern.admin('POST', '/people/bo@example.com/end', {});
  await expect(toConsole('both')).rejects.toThrow('403');
  expect(await statusWith(postern, key.key)).toBe(401);
  await postern.admin('POST', '/people/bo@example.com/reopen', {});
  await toConsole('both');
  expect(await statusWith(postern, key.key)).toBe(401);
});

it('an administrator changes the end for good, and not that of the last sign-in', async () => {
  const key = await own(await toConsole('jane'));
  const change = (expires_at: string | null) =>
    postern.admin<Key>('PATCH', `/keys/${key.id}`, { expires_at });
  const [later, earlier] = [200, 3].map((days) => new Date(Date.now() + days * DAY_MS).toISOString());
  expect(await change(later!)).toMatchObject({ expires_at: key.expires_at, latest_expiry: later });
  const { version } = await read(key.id);
  expect(await change(later!)).toMatchObject({ version });
  // Neither what was read nor the same end, with something else, lets it work without a sign-in or ends it for good.
  for (const expires_at of [later!, key.expires_at])
    expect(
      await postern.admin<Key>('PATCH', `/keys/${key.id}`, { expires_at, note: expires_at }),
    ).toMatchObject({ expires_at: key.expires_at, latest_expiry: later, note: expires_at });
  expect(await change(earlier!)).toMatchObject({ expires_at: earlier, latest_expiry: earlier });
  await expect(change(null)).rejects.toThrow('"field":"expires_at"');
});

it('is announced before its own end only: the next sign-in moves the other one', async () => {
  await postern.admin('POST', '/webhooks', { url: provider.url, events: ['key.expiring'] });
  await allow({ ...RULE, sign_in_within_days: 3 });
  const key = await own(await toConsole('jane'));
  const soon = new Date(Date.now() + 7 * DAY_MS).toISOString();
  const listed = async () => {
    const { data } = await postern.admin<{ data: Key[] }>(
      'GET',
      `/keys?status=active&expires_before=${soon}`,
    );
    return data.some(({ id }) => id === key.id);
  };
  const announced = async () => {
    await postern.gateway.app.get(AlertScan).run();
    const attention = await postern.admin<{ data: { kind: string; names: { id: string }[] }[] }>(
      'GET',
      '/attention',
    );
    const named = attention.data.some(
      ({ kind, names }) => kind === 'key_expiring' && names.some(({ id }) => id === key.id),
    );
    const events = await postern.database.query(
      `SELECT FROM webhook_event WHERE type = 'key.expiring' AND data->>'key_id' = $1`,
      [key.id],
    );
    return [await listed(), named, events.length];
  };
  expect(await announced()).toEqual([false, false, 0]);
  await postern.database.query(
    `UPDATE gateway_key SET latest_expiry = now() + interval '6 days', created_at = now() - interval '80 days' WHERE id = $1`,
    [key.id],
  );
  expect(await announced()).toEqual([true, true, 1]);
});

it('a lead asks for a sign-in as often as an administrator does, or more often', async () => {
  const { token } = await postern.admin<{ token: string }>('POST', '/tokens', {
    name: 'lead',
    role: 'lead',
    teams: ['default'],
  });
  const change = async (self_service: object | null) => {
    const response = await fetch(`${postern.url}/admin/v1/teams/default`, {
      method: 'PATCH',
      headers: withToken(token),
      body: JSON.stringify({ self_service }),
    });
    return response.status;
  };
  expect(await change({ ...RULE, sign_in_within_days: null })).toBe(403);
  expect(await change({ ...RULE, sign_in_within_days: 15 })).toBe(403);
  expect(await change(null)).toBe(403);
  expect(await change({ ...RULE, sign_in_within_days: 5 })).toBe(200);
});
