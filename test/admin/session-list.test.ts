import { HeldLocks } from '../identity/held-locks.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { CONSOLE, send, signIn } from './browser.js';

interface Listed {
  id: string;
  actor: string;
  role: string;
  teams: { name: string }[] | null;
  current: boolean;
}

let postern: TestGateway;
let replica: TestGateway;
const tokens: Record<string, string> = {};
beforeAll(async () => {
  postern = await startTestGateway();
  replica = await startTestGateway({}, postern.database);
  for (const [name, role] of [
    ['vic', 'viewer'],
    ['mia', 'team'],
    ['boss', 'admin'],
  ] as const)
    tokens[name] = await newToken(name, role);
});
afterAll(async () => {
  await replica.stop();
  await postern.stop();
});
beforeEach(() => postern.database.query('DELETE FROM admin_session'));

async function newToken(name: string, role: string): Promise<string> {
  const body = { name, role, ...(role === 'team' && { teams: ['default'] }) };
  return (await postern.admin<{ token: string }>('POST', '/tokens', body)).token;
}

const list = async (headers: string[], query = '') =>
  (await send(postern, `GET /admin/v1/sessions${query}`, headers)).json().data as Listed[];
const end = async (cookie: string, path: string) => {
  const answer = await send(postern, `DELETE /admin/v1/sessions${path}`, [cookie, ...CONSOLE]);
  return answer.status;
};
const isOpen = async (cookie: string) => (await send(replica, 'GET /admin/v1/keys', [cookie])).status === 200;
const asAdmin = [`Authorization: Bearer ${ADMIN_TOKEN}`];
const stored = async () =>
  (await postern.database.find<{ count: number }>('SELECT count(*)::int AS count FROM admin_session')).count;

it('sessions are listed, newest first, in pages, without what opens them', async () => {
  const mia = await signIn(postern, tokens.mia!);
  const admin = await signIn(postern, ADMIN_TOKEN);
  const shown = await list([admin]);
  expect(shown).toMatchObject([
    { actor: 'admin-token', role: 'admin', teams: null, client_ip: '127.0.0.1', current: true },
    { actor: 'token:mia', role: 'team', teams: [{ name: 'default' }], current: false },
  ]);
  expect(Object.keys(shown[0]!).sort()).toEqual([
    'actor',
    'client_ip',
    'created_at',
    'current',
    'expires_at',
    'id',
    'last_seen_at',
    'role',
    'teams',
  ]);
  const first = (await send(postern, 'GET /admin/v1/sessions?limit=1', asAdmin)).json();
  expect(first.data).toMatchObject([{ id: shown[0]!.id }]);
  const rest = await list(asAdmin, `?limit=1&cursor=${first.next_cursor as string}`);
  expect(rest.map(({ id }) => id)).toEqual([shown[1]!.id]);
  expect((await list(asAdmin, '?actor=token:mia')).map(({ id }) => id)).toEqual([shown[1]!.id]);
  expect(await isOpen(mia)).toBe(true);
});

it('those that have ended, or began with another ADMIN_TOKEN, are not listed', async () => {
  await signIn(postern, ADMIN_TOKEN);
  const other = await startTestGateway({ ADMIN_TOKEN: 'another-admin-token-012' }, postern.database);
  const seen = await send(other, 'GET /admin/v1/sessions', ['Authorization: Bearer another-admin-token-012']);
  expect(seen.json().data).toEqual([]);
  expect(await list(asAdmin)).toHaveLength(1);
  await other.stop();
  await postern.database.query(`UPDATE admin_session SET last_seen_at = now() - interval '9 hours'`);
  expect(await list(asAdmin)).toEqual([]);
});

it('an administrator ends one, or all of a user, on every replica at once', async () => {
  const [one, two, three] = [
    await signIn(postern, tokens.mia!),
    await signIn(postern, tokens.mia!),
    await signIn(postern, tokens.mia!),
  ];
  const other = await signIn(postern, tokens.vic!);
  const admin = await signIn(postern, tokens.boss!);
  const [newest] = await list([admin], '?actor=token:mia');
  expect(await end(admin, `/${newest!.id}`)).toBe(204);
  expect(await end(admin, `/${newest!.id}`)).toBe(404);
  expect([await isOpen(one), await isOpen(two), await isOpen(three)]).toEqual([true, true, false]);
  const all = await send(postern, 'DELETE /admin/v1/sessions?actor=token:mia', [admin, ...CONSOLE]);
  expect([all.status, all.json()]).toEqual([200, { ended: 2 }]);
  expect([await isOpen(one), await isOpen(two)]).toEqual([false, false]);
  expect([await isOpen(other), await isOpen(admin)]).toEqual([true, true]);
  expect(await end(admin, '')).toBe(400);
  expect(await postern.admin('GET', '/audit?subject_type=session&action=ended')).toMatchObject({
    data: Array(3).fill({ actor: 'token:boss', subject_name: 'token:mia', after: null }),
  });
});

it.each(['vic', 'mia'])('%s, no administrator, sees and ends only their own', async (name) => {
  const admin = await signIn(postern, ADMIN_TOKEN);
  const own = await signIn(postern, tokens[name]!);
  const second = await signIn(postern, tokens[name]!);
  const [, , foreign] = await list(asAdmin);
  expect(foreign!.actor).toBe('admin-token');
  expect((await list([own])).map(({ actor }) => actor)).toEqual([`token:${name}`, `token:${name}`]);
  expect(await list([own], '?actor=admin-token')).toEqual([]);
  expect(await end(own, `/${foreign!.id}`)).toBe(404);
  expect(await end(own, '?actor=admin-token')).toBe(200);
  expect(await isOpen(admin)).toBe(true);
  expect(await end(own, `?actor=token:${name}`)).toBe(200);
  expect([await isOpen(own), await isOpen(second)]).toEqual([false, false]);
});

it('sign-ins and sign-outs are in the audit log', async () => {
  const cookie = await signIn(postern, tokens.vic!);
  const [{ id }] = (await list(asAdmin)) as [Listed];
  await send(postern, 'DELETE /admin/v1/session', [cookie, ...CONSOLE]);
  expect(await postern.admin('GET', `/audit?subject_id=${id}`)).toMatchObject({
    data: [
      { action: 'signed_out', actor: 'token:vic', subject_type: 'session', after: null },
      {
        action: 'signed_in',
        actor: 'token:vic',
        subject_name: 'token:vic',
        before: null,
        client_ip: '127.0.0.1',
        after: { role: 'viewer' },
      },
    ],
  });
  expect(await postern.admin('GET', '/audit?action=signed_in&subject_type=session&limit=1')).toMatchObject({
    data: [{ subject_id: id }],
  });
});

it('a sign-in that fails leaves no entry: it is counted', async () => {
  const before = await postern.admin<{ data: unknown[] }>('GET', '/audit?limit=500');
  const failed = async () => {
    const response = await fetch(`${postern.url}/metrics`, {
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    });
    return /postern_sign_ins_total\{method="token",result="failed"\} (\d+)/.exec(await response.text())?.[1];
  };
  const count = Number(await failed());
  await send(postern, 'POST /admin/v1/session', CONSOLE, '{"token":"wrong"}');
  expect(Number(await failed())).toBe(count + 1);
  expect(await postern.admin('GET', '/audit?limit=500')).toEqual(before);
});

describe('sessions end while others end the same', () => {
  let locks: HeldLocks;
  beforeAll(async () => void (locks = await HeldLocks.in(postern.database)));
  afterAll(() => locks.end());

  it.each([
    ['the oldest of a user', 0, () => signIn(postern, ADMIN_TOKEN)],
    ['idle ones', 9, () => signIn(postern, ADMIN_TOKEN)],
    [
      'those of an actor',
      0,
      () => send(postern, 'DELETE /admin/v1/sessions?actor=admin-token', [...asAdmin, ...CONSOLE]),
    ],
  ] as const)('%s', async (_, idleHours, request) => {
    const { database } = postern;
    await signIn(postern, ADMIN_TOKEN);
    // More than a user may have.
    await database.query(
      `INSERT INTO admin_session (digest, user_id, actor, role, expires_at, created_at, last_seen_at)
       SELECT decode(md5(i::text), 'hex'), user_id, actor, role, now() + interval '9 hours', now() - i * interval '1 hour', now()
       FROM admin_session, generate_series(1, 21) AS i`,
    );
    const oldest = await database.query<{ id: string }>(
      'SELECT id FROM admin_session ORDER BY created_at LIMIT 2',
    );
    const [first, second] = oldest.map(({ id }) => id).sort();
    for (const id of [second, first])
      await database.query(
        `UPDATE admin_session SET last_seen_at = now() - make_interval(hours => $2) WHERE id = $1`,
        [id, idleHours],
      );
    const lock = (id?: string): [string, unknown[]] => [
      'SELECT FROM admin_session WHERE id = $1 FOR UPDATE',
      [id],
    ];
    await locks.between<unknown>(lock(first), request, [lock(second)]);
    const left = await database.query('SELECT FROM admin_session WHERE id = ANY ($1)', [[first, second]]);
    expect(left).toEqual([]);
  });
});

describe('the sessions of a user are limited', () => {
  it('to 20: the oldest ends with the next, however many are begun at once', async () => {
    const first = await signIn(postern, ADMIN_TOKEN);
    const others = await Promise.all(Array.from({ length: 30 }, () => signIn(postern, ADMIN_TOKEN)));
    expect(await stored()).toBe(20);
    expect(await isOpen(first)).toBe(false);
    const last = await signIn(postern, ADMIN_TOKEN);
    expect([await stored(), await isOpen(last)]).toEqual([20, true]);
    expect((await Promise.all(others.map(isOpen))).filter(Boolean)).toHaveLength(19);
  });

  it('to 20 sign-ins in 10 minutes, which says when the next may be; others sign in', async () => {
    const token = await newToken('eager', 'viewer');
    const body = JSON.stringify({ token });
    const statuses: number[] = [];
    for (let i = 0; i < 20; i++)
      statuses.push((await send(postern, 'POST /admin/v1/session', CONSOLE, body)).status);
    expect(new Set(statuses)).toEqual(new Set([204]));
    const cookie = await signIn(replica, token);
    const answer = await send(postern, 'POST /admin/v1/session', [...CONSOLE, cookie], body);
    expect(answer.status).toBe(429);
    expect(Number(answer.header('retry-after'))).toBeGreaterThan(0);
    expect(answer.json()).toMatchObject({ error: { code: 'rate_limited' } });
    // The session that the browser has goes on.
    expect(await isOpen(cookie)).toBe(true);
    await signIn(postern, tokens.boss!);
  });

  it('so that a sign-in need not read the sessions of others to find ended ones', async () => {
    await postern.database.query(
      `INSERT INTO admin_session (digest, actor, role, expires_at)
       SELECT decode(md5(i::text), 'hex'), 'sso:user ' || i, 'viewer', now() + interval '1 hour' FROM generate_series(1, 5000) AS i`,
    );
    await postern.database.query('ANALYZE admin_session');
    const plan = await postern.database.query(
      `EXPLAIN DELETE FROM admin_session WHERE last_seen_at <= now() - interval '8 hours'`,
    );
    expect(JSON.stringify(plan)).toContain('admin_session_last_seen_at_idx');
  });
});
