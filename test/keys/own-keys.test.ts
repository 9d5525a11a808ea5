import pg from 'pg';
import type { GatewayHttpAdapter } from '../../src/proxy/http/gateway-http.adapter.js';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { signIn } from '../admin/browser.js';
import { RawProvider, answer } from '../support/raw-provider.js';

interface Key {
  id: string;
  key: string;
  owner: string | null;
  owner_id: string | null;
  expires_at: string | null;
  endpoints: string;
  providers: string[] | null;
  idempotency: string;
  budgets: { usd: string; period: string; mode: string }[];
  error: { code: string; details: { field: string }[] };
}

const DAY_MS = 86_400_000;

let provider: RawProvider;
let postern: TestGateway;
let jane: string;
let joe: string;
beforeAll(async () => {
  provider = await RawProvider.start((req) => void req.socket.write(answer('200 OK', [], 'ok')));
  postern = await startTestGateway({ PROVIDER_URL: provider.url });
  await postern.admin('POST', '/teams', {
    name: 'open',
    self_service: { keys_per_user: 2, max_days: 30, budget_usd_per_month: '5.50' },
  });
  await postern.admin('POST', '/teams', { name: 'free', self_service: { keys_per_user: 1, max_days: 30 } });
  await postern.admin('POST', '/teams', { name: 'closed' });
  await postern.admin('POST', '/teams', { name: 'foreign', self_service: { keys_per_user: 9, max_days: 9 } });
  const teams = ['open', 'free', 'closed'];
  const token = async (name: string) =>
    (await postern.admin<{ token: string }>('POST', '/tokens', { name, role: 'team', teams })).token;
  [jane, joe] = [await token('jane'), await token('joe')];
});
afterAll(async () => {
  await postern.stop();
  await provider.stop();
});

async function ask(token: string, method: string, path: string, body?: object) {
  const response = await fetch(`${postern.url}/admin/v1/keys${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Key };
}

let names = 0;
const make = (token: string, body: object = {}) =>
  ask(token, 'POST', '', { team: 'open', name: `key ${++names}`, ...body });
const callWith = async (key: string) =>
  (await fetch(`${postern.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })).status;
const callOn = async (path: string, key: string) =>
  (await fetch(postern.url + path, { headers: { authorization: `Bearer ${key}` } })).status;
const allow = (settings: object | null) => postern.admin('PATCH', '/teams/open', { self_service: settings });
const RULES = { keys_per_user: 2, max_days: 30, budget_usd_per_month: '5.50' };
const forget = () =>
  postern.database
    .query(
      `DELETE FROM gateway_key_secret WHERE key_id IN (SELECT id FROM gateway_key WHERE owner IS NOT NULL)`,
    )
    .then(() => postern.database.query('DELETE FROM gateway_key WHERE owner IS NOT NULL'));
beforeEach(forget);

describe('a member of a team that allows it', () => {
  it('creates a key of their own, within what the team allows', async () => {
    const asked = Date.now();
    const { status, body } = await make(jane);
    expect(status).toBe(201);
    expect(body).toMatchObject({
      owner: 'token:jane',
      endpoints: 'inference',
      providers: null,
      idempotency: 'forward',
      budgets: [{ usd: '5.50', period: 'month', mode: 'block' }],
    });
    expect(Date.parse(body.expires_at!)).toBeLessThanOrEqual(Date.now() + 30 * DAY_MS);
    expect(Date.parse(body.expires_at!)).toBeGreaterThanOrEqual(asked + 30 * DAY_MS);
    expect(await callWith(body.key)).toBe(200);
    const earlier = new Date(Date.now() + DAY_MS).toISOString();
    expect((await make(jane, { expires_at: earlier })).body.expires_at).toBe(earlier);
    expect(await postern.admin('GET', `/audit?subject_id=${body.id}`)).toMatchObject({
      data: [{ actor: 'token:jane', action: 'created' }],
    });
  });

  it('has a key without a budget where the team sets none', async () => {
    expect((await make(jane, { team: 'free' })).body.budgets).toEqual([]);
  });

  it.each([
    ['providers', ['default']],
    ['endpoints', 'inference'],
    ['endpoints', 'all'],
    ['idempotency', 'replay'],
    ['models', null],
    ['stream_usage', 'as_sent'],
    ['limits', null],
    ['budgets', []],
    ['each_end_user', null],
  ])('may not choose %s, not even as it would be anyway', async (field, value) => {
    const { status, body } = await make(jane, { [field]: value });
    expect([status, body.error.code, body.error.details[0]!.field]).toEqual([403, 'forbidden', field]);
  });

  it('may not choose the owner', async () => {
    expect((await make(jane, { owner: 'token:joe' })).status).toBe(403);
  });

  it('may not make it live longer', async () => {
    const { status, body } = await make(jane, {
      expires_at: new Date(Date.now() + 31 * DAY_MS).toISOString(),
    });
    expect([status, body.error.details[0]!.field]).toEqual([400, 'expires_at']);
  });

  it('has no more keys than allowed, however fast they are asked for; others have theirs', async () => {
    const made = await Promise.all(Array.from({ length: 6 }, () => make(jane)));
    expect(made.map(({ status }) => status).sort()).toEqual([201, 201, 409, 409, 409, 409]);
    expect((await make(joe)).status).toBe(201);
  });

  it('waits for a lock on one connection, however many keys they create: others go on', async () => {
    const lock = new pg.Client({ connectionString: postern.database.url });
    await lock.connect();
    await lock.query('BEGIN; LOCK TABLE gateway_key IN EXCLUSIVE MODE');
    // Postgres ends the first after some seconds.
    let ended = 0;
    const all = Promise.all(Array.from({ length: 30 }, () => make(jane).finally(() => ended++)));
    const waits = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'postern'
      AND datname = current_database()`;
    await eventually(async () => (await postern.database.query(waits)).length > 0);
    const adapter = postern.gateway.app.getHttpAdapter() as GatewayHttpAdapter;
    await eventually(() => adapter.openRequests + ended === 30);
    // In turn: meanwhile the others take whatever connections they would.
    const statuses: unknown[] = [];
    for (let i = 0; i < 10; i++) {
      const asked = await fetch(`${postern.url}/admin/v1/teams`, {
        headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
        signal: AbortSignal.timeout(20_000),
      }).catch(() => ({ status: 'waits' }));
      statuses.push(asked.status);
      if (asked.status !== 200) break;
    }
    await lock.end();
    await all;
    expect(statuses).toEqual(Array(10).fill(200));
  });

  it('may create keys however often they sign in', async () => {
    const { token } = await postern.admin<{ token: string }>('POST', '/tokens', {
      name: 'often here',
      role: 'team',
      teams: ['open'],
    });
    for (let i = 0; i < 20; i++) await signIn(postern, token);
    expect((await make(token)).status).toBe(201);
  });

  it('may create and rotate keys 20 times an hour, however fast, and revoke them at any time; others have theirs', async () => {
    await postern.database.query('DELETE FROM audit_log');
    const { id } = (await make(jane)).body;
    const rotated = await Promise.all(Array.from({ length: 30 }, () => ask(jane, 'POST', `/${id}/rotate`)));
    expect(rotated.filter(({ status }) => status === 200)).toHaveLength(19);
    expect(rotated.filter(({ status }) => status === 409)).toHaveLength(11);
    expect((await make(jane)).status).toBe(409);
    expect((await make(joe)).status).toBe(201);
    expect((await ask(jane, 'POST', `/${id}/revoke`)).status).toBe(200);
    const changes = await postern.database.query("SELECT FROM audit_log WHERE actor = 'token:jane'");
    expect(changes).toHaveLength(21);
    await postern.database.query(
      // As if they had been made an hour and a second ago.
      `UPDATE audit_log SET id = (lpad(to_hex((extract(epoch FROM now() - interval '3601 s') * 1000)::bigint), 12, '0')
        || right(replace(id::text, '-', ''), 20))::uuid`,
    );
    expect((await make(jane, { team: 'free' })).status).toBe(201);
  });

  it('gets no new budget by revoking a key and creating another', async () => {
    const [first] = [await make(jane), await make(jane)];
    expect((await ask(jane, 'POST', `/${first.body.id}/revoke`)).status).toBe(200);
    expect((await make(jane)).status).toBe(409);
    const age = (at: string) =>
      postern.database.query(
        `UPDATE gateway_key SET created_at = now() - interval '80 days', revoked_at = ${at} WHERE id = $1`,
        [first.body.id],
      );
    // However old it is: this month's budget was its own.
    await age(`date_trunc('month', now(), 'UTC') + interval '1 microsecond'`);
    expect((await make(jane)).status).toBe(409);
    await age(`date_trunc('month', now(), 'UTC')`);
    expect((await make(jane)).status).toBe(201);
  });

  it('gets no new budget when a key expires', async () => {
    const [first] = [await make(jane), await make(jane)];
    await postern.database.query('UPDATE gateway_key SET expires_at = now() WHERE id = $1', [first.body.id]);
    expect((await make(jane)).status).toBe(409);
  });

  it('without a budget, gets a new key for a revoked or an expired one', async () => {
    const { body } = await make(jane, { team: 'free' });
    expect((await make(jane, { team: 'free' })).status).toBe(409);
    await ask(jane, 'POST', `/${body.id}/revoke`);
    const second = await make(jane, { team: 'free' });
    expect(second.status).toBe(201);
    await postern.database.query('UPDATE gateway_key SET expires_at = now() WHERE id = $1', [second.body.id]);
    expect((await make(jane, { team: 'free' })).status).toBe(201);
  });

  it('rotates and revokes keys of their own', async () => {
    const { body } = await make(jane);
    const rotated = await ask(jane, 'POST', `/${body.id}/rotate`);
    expect(rotated.status).toBe(200);
    expect(await callWith(rotated.body.key)).toBe(200);
    expect((await ask(jane, 'POST', `/${body.id}/revoke`)).status).toBe(200);
  });

  it('does nothing with the keys of others, and changes none', async () => {
    const own = (await make(jane)).body.id;
    const ofTeam = await postern.admin<Key>('POST', '/keys', { team: 'open', name: `of team ${++names}` });
    const foreign = await postern.admin<Key>('POST', '/keys', {
      team: 'foreign',
      name: `foreign ${++names}`,
    });
    for (const [id, token, status] of [
      [own, joe, 403],
      [ofTeam.id, jane, 403],
      [foreign.id, jane, 404],
    ] as const) {
      expect((await ask(token, 'POST', `/${id}/rotate`)).status).toBe(status);
      expect((await ask(token, 'POST', `/${id}/revoke`)).status).toBe(status);
      expect((await ask(token, 'PATCH', `/${id}`, { name: 'mine now' })).status).toBe(403);
    }
    expect((await ask(jane, 'PATCH', `/${own}`, { expires_at: null })).status).toBe(403);
    const left = await postern.database.query('SELECT FROM gateway_key WHERE revoked_at IS NOT NULL');
    expect(left).toEqual([]);
  });
});

it.each([
  ['closed', 403],
  ['foreign', 404],
  ['nobody', 404],
])('a member creates no key in the team %s', async (team, status) => {
  expect((await make(jane, { team })).status).toBe(status);
});

it('keys that administrators create have no owner', async () => {
  const made = await postern.admin<Key>('POST', '/keys', { team: 'open', name: `by admin ${++names}` });
  expect(made.owner).toBeNull();
});

it.each([
  [{ keys_per_user: 0, max_days: 1 }, 'self_service.keys_per_user'],
  [{ keys_per_user: 1 }, 'self_service.max_days'],
  [{ keys_per_user: 1, max_days: 1, budget_usd_per_month: '-1' }, 'self_service.budget_usd_per_month'],
  [{ keys_per_user: 1, max_days: 1, more: 1 }, 'self_service.more'],
  [{ keys_per_user: 1, max_days: 1, sign_in_within_days: 0 }, 'self_service.sign_in_within_days'],
  [{ keys_per_user: 1, max_days: 1, providers: [] }, 'self_service.providers'],
  [{ keys_per_user: 1, max_days: 1, providers: ['nobody'] }, 'self_service.providers'],
])('a team does not allow %j', async (settings, field) => {
  const team = { name: `x${++names}`, self_service: settings };
  await expect(postern.admin('POST', '/teams', team)).rejects.toThrow(`"field":"${field}"`);
});

it('is changed and ended with the team', async () => {
  const { id, version } = await postern.admin<{ id: string; version: number }>('GET', '/teams/free');
  const change = (body: object) => postern.admin<Record<string, unknown>>('PATCH', `/teams/${id}`, body);
  const settings = {
    ...{ keys_per_user: 1, max_days: 30, budget_usd_per_month: null, providers: null },
    sign_in_within_days: null,
  };
  expect(await change({ self_service: settings })).toMatchObject({ version });
  expect(await change({ self_service: null })).toMatchObject({ self_service: null, version: version + 1 });
  expect((await make(jane, { team: 'free' })).status).toBe(403);
});

describe('a team that names the providers of such keys', () => {
  beforeAll(async () => {
    for (const name of ['cheap', 'dear'])
      await postern.admin('POST', '/providers', { name, url: provider.url, secret: null });
  });
  afterEach(() => allow(RULES));
  const reached = async (key: string) => {
    const statuses: number[] = [];
    for (const name of ['cheap', 'dear']) statuses.push(await callOn(`/p/${name}/v1/models`, key));
    return statuses;
  };

  it('keeps them to these, and those that there are already, on every use', async () => {
    const { key: before } = (await make(jane)).body;
    expect(await reached(before)).toEqual([200, 200]);
    await allow({ ...RULES, providers: ['cheap'] });
    await eventually(async () => (await reached(before))[1] === 403);
    expect(await reached(before)).toEqual([200, 403]);
    const { body } = await make(jane);
    expect(body.providers).toEqual(['cheap']);
    expect(await reached(body.key)).toEqual([200, 403]);
    const own = await fetch(`${postern.url}/self/v1/key`, { headers: { authorization: `Bearer ${before}` } });
    expect(await own.json()).toMatchObject({ providers: ['cheap'] });
    // Neither a wider list nor the end of all keys of members gives a key more than it was created with.
    await allow({ ...RULES, providers: ['dear'] });
    await eventually(async () => (await reached(before))[0] === 403);
    await eventually(async () => (await reached(body.key)).join() === '403,403');
    await allow(null);
    await eventually(async () => (await reached(before))[0] === 200);
    await eventually(async () => (await reached(body.key)).join() === '200,403');
  });

  it('does not keep the keys of administrators to them, nor a member from a key when one is gone', async () => {
    await postern.admin('POST', '/providers', { name: 'gone', url: provider.url, secret: null });
    await allow({ ...RULES, providers: ['gone'] });
    const ofTeam = await postern.createKey({ team: 'open' });
    expect(await reached(ofTeam)).toEqual([200, 200]);
    await fetch(`${postern.url}/admin/v1/providers/gone`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    });
    const { status, body } = await make(jane);
    expect([status, body.providers]).toEqual([201, ['gone']]);
    expect(await reached(body.key)).toEqual([403, 403]);
  });
});

describe('when a team allows no keys any more', () => {
  afterEach(() => allow(RULES));

  it('its members cannot rotate theirs, and can revoke them', async () => {
    const { body } = await make(jane);
    await allow(null);
    const rotated = await ask(jane, 'POST', `/${body.id}/rotate`);
    expect([rotated.status, rotated.body.error.code]).toEqual([403, 'forbidden']);
    expect(await callWith(body.key)).toBe(200);
    expect((await ask(jane, 'POST', `/${body.id}/revoke`)).status).toBe(200);
  });
});

describe('a key belongs to a token', () => {
  const token = (name: string) =>
    postern.admin<{ id: string; token: string }>('POST', '/tokens', { name, role: 'team', teams: ['open'] });
  const revoke = (id: string) =>
    fetch(`${postern.url}/admin/v1/tokens/${id}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    });
  const asBefore = (id: string) =>
    postern.database.query('UPDATE gateway_key SET owner_id = NULL WHERE id = $1', [id]);

  it('and not to another one that is given its name', async () => {
    const first = await token('mallory');
    const { body } = await make(first.token);
    expect(body).toMatchObject({ owner: 'token:mallory', owner_id: `token:${first.id}` });
    await revoke(first.id);
    const second = await token('mallory');
    expect((await ask(second.token, 'POST', `/${body.id}/rotate`)).status).toBe(403);
    expect((await ask(second.token, 'POST', `/${body.id}/revoke`)).status).toBe(403);
    // Nor is it counted as one of theirs.
    expect([(await make(second.token)).status, (await make(second.token)).status]).toEqual([201, 201]);
    expect((await make(second.token)).status).toBe(409);
  });

  it('also if an earlier version created it, which stored the name alone', async () => {
    const first = await token('trudy');
    const { body } = await make(first.token);
    await asBefore(body.id);
    expect((await ask(first.token, 'POST', `/${body.id}/rotate`)).status).toBe(200);
    await make(first.token);
    expect((await make(first.token)).status).toBe(409);
    await revoke(first.id);
    const second = await token('trudy');
    expect((await ask(second.token, 'POST', `/${body.id}/rotate`)).status).toBe(403);
  });
});

describe('what a new key of a member would have', () => {
  const allowance = async (token: string, team: string) => {
    const response = await fetch(`${postern.url}/admin/v1/keys/allowance?team=${team}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };

  it('is what the key then has, and keys count as they do when one is created', async () => {
    await postern.admin('POST', '/teams', {
      name: 'unbudgeted',
      self_service: { keys_per_user: 1, max_days: 30 },
    });
    const body = { name: 'zoe', role: 'team', teams: ['open', 'unbudgeted', 'closed'] };
    const { token: zoe } = await postern.admin<{ token: string }>('POST', '/tokens', body);
    const before = await allowance(zoe, 'open');
    expect(before).toMatchObject({
      status: 200,
      body: {
        team: 'open',
        keys: 0,
        keys_per_user: 2,
        max_days: 30,
        budget_usd_per_month: '5.50',
        providers: null,
      },
    });
    const month = new Date();
    month.setUTCDate(1);
    month.setUTCHours(0, 0, 0, 0);
    expect(before.body.counted_since).toBe(month.toISOString());
    month.setUTCMonth(month.getUTCMonth() + 1);
    expect(before.body.budget_resets_at).toBe(month.toISOString());
    const { body: key } = await make(zoe);
    const expected = Date.parse(before.body.latest_expiry as string);
    expect(Math.abs(Date.parse(key.expires_at!) - expected)).toBeLessThan(60_000);
    // With a budget, also one that was revoked.
    await ask(zoe, 'POST', `/${key.id}/revoke`);
    expect((await allowance(zoe, 'open')).body).toMatchObject({ keys: 1 });
    const { body: free } = await make(zoe, { team: 'unbudgeted' });
    expect((await allowance(zoe, 'unbudgeted')).body).toMatchObject({
      keys: 1,
      counted_since: null,
      budget_resets_at: null,
    });
    await ask(zoe, 'POST', `/${free.id}/revoke`);
    expect((await allowance(zoe, 'unbudgeted')).body).toMatchObject({ keys: 0 });
    expect((await allowance(zoe, 'closed')).status).toBe(403);
    expect((await allowance(zoe, 'foreign')).status).toBe(404);
  });
});
