import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { UsageRollup } from '../../src/usage/usage-rollup.service.js';
import { LedgerService } from '../../src/limits/ledger/ledger.service.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { insertRow } from '../request-log/rows.js';
import { spend } from '../webhooks/alerts.js';

let provider: RawProvider;
let gateway: TestGateway;
beforeAll(async () => {
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', [], '{}'));
  });
  gateway = await startTestGateway({ PROVIDER_URL: provider.url, ADMIN_PORT: '0' });
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});

interface Key {
  id: string;
  team_id: string;
  name: string;
  prefix: string;
  key: string;
}

const createKey = (members: object = {}): Promise<Key> =>
  gateway.admin('POST', '/keys', {
    team: 'default',
    name: randomBytes(6).toString('hex'),
    ...members,
  }) as never;

interface Reply {
  status: number;
  headers: Headers;
  body: Record<string, unknown> & { error: Record<string, unknown> };
}

async function self(path: string, key: string | null, headers = {}, url = gateway.url): Promise<Reply> {
  const response = await fetch(`${url}/self${path}`, {
    headers: { ...(key !== null && { authorization: `Bearer ${key}` }), ...headers },
  });
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Reply['body'],
  };
}

it('shows a key itself, with the limits that apply to it, on both ports, and never cached', async () => {
  const team = await gateway.admin<{ id: string }>('POST', '/teams', {
    name: 'search',
    models: ['gpt-*'],
    budgets: [{ usd: '100', period: 'total' }],
    each_end_user: { requests_per_minute: 5 },
  });
  const key = await createKey({
    team: 'search',
    expires_at: '2030-01-31T12:00:00.000Z',
    providers: ['default'],
    limits: { requests_per_minute: 60 },
    budgets: [{ usd: '10', period: 'month', alert_at: [20] }],
  });
  const other = await createKey({ team: 'search', budgets: [{ usd: '77', period: 'day' }] });
  await spend(gateway.database, key, '2.5');
  await spend(gateway.database, { id: other.id, team_id: team.id }, '1');
  for (const url of [gateway.url, gateway.gateway.adminUrl!]) {
    const { status, headers, body } = await self('/v1/key', key.key, {}, url);
    expect(status).toBe(200);
    expect(headers.get('cache-control')).toBe('no-store');
    expect(body).toEqual({
      name: key.name,
      prefix: key.prefix,
      team: 'search',
      status: 'active',
      expires_at: '2030-01-31T12:00:00.000Z',
      secret_expires_at: null,
      endpoints: 'inference',
      providers: ['default'],
      idempotency: 'forward',
      models: null,
      team_models: ['gpt-*'],
      shared_limits: [],
      limits: expect.arrayContaining([
        expect.objectContaining({ scope: 'key', resource: 'requests', period: 'minute', amount: '60' }),
        expect.objectContaining({
          scope: 'key',
          resource: 'usd',
          period: 'month',
          amount: '10.00',
          used: '2.50',
          left: '7.50',
          state: 'warned',
          resets_at: expect.stringMatching(/-01T00:00:00.000Z$/) as string,
        }),
        expect.objectContaining({ scope: 'team', resource: 'usd', used: '3.50', resets_at: null }),
      ]) as object[],
    });
    expect(body.limits).toHaveLength(3);
    const text = JSON.stringify(body);
    for (const foreign of [other.id, other.name, other.prefix, '77.00']) expect(text).not.toContain(foreign);
  }
  expect(provider.requests).toHaveLength(0);
});

it('shows the limits of an end user only if it is named, and never the use of another', async () => {
  const key = await createKey({ each_end_user: { budgets: [{ usd: '2', period: 'day' }] } });
  const [rule] = await gateway.database.query<{ id: string }>(
    'SELECT id FROM limit_rule WHERE scope_id = $1',
    [key.id],
  );
  const ledger = gateway.gateway.app.get(LedgerService);
  await gateway.database.query(
    `INSERT INTO limit_meter (rule_id, subject, window_start, spent) VALUES ($1, $2, date_trunc('day', now(), 'UTC'), 1500000000)`,
    [rule!.id, ledger.subjectOf('ann')],
  );
  const limits = async (headers = {}) => (await self('/v1/key', key.key, headers)).body.limits;
  expect(await limits()).toEqual([]);
  expect(await limits({ 'x-gateway-user': 'ann' })).toMatchObject([{ used: '1.50', left: '0.50' }]);
  expect(await limits({ 'x-gateway-user': 'ben' })).toMatchObject([{ used: '0.00', left: '2.00' }]);
});

it('never shows what an end user has used with other keys of the team', async () => {
  const eachEndUser = { budgets: [{ usd: '2', period: 'day' }] };
  const team = await gateway.admin<{ id: string }>('POST', '/teams', {
    name: 'shared',
    each_end_user: eachEndUser,
  });
  const key = await createKey({ team: 'shared', each_end_user: eachEndUser });
  const other = await createKey({ team: 'shared', each_end_user: eachEndUser });
  await gateway.database.query(
    `INSERT INTO limit_meter (rule_id, subject, window_start, spent)
     SELECT id, $1, date_trunc('day', now(), 'UTC'), 1500000000 FROM limit_rule WHERE scope_id IN ($2, $3)`,
    [gateway.gateway.app.get(LedgerService).subjectOf('ann'), team.id, other.id],
  );
  const limits = async ({ key }: Key) =>
    (await self('/v1/key', key, { 'x-gateway-user': 'ann' })).body.limits;
  expect(await limits(key)).toMatchObject([{ used: '0.00', left: '2.00' }]);
  expect(await limits(other)).toMatchObject([{ used: '1.50', left: '0.50' }]);
});

it('adds up the calls of the key alone: today, this month, and by day', async () => {
  const [key, other] = [await createKey(), await createKey()];
  const row = (at: Date, columns: object = {}) =>
    insertRow(gateway.database, at, {
      key_id: key.id,
      team_id: key.team_id,
      prompt_tokens: 10,
      completion_tokens: 5,
      cost_usd: '0.5',
      ...columns,
    });
  const now = new Date();
  const yesterday = new Date(now.getTime() - 86_400_000);
  await row(now);
  await row(now, { prompt_tokens: null, completion_tokens: null, cost_usd: null });
  await row(yesterday);
  await row(now, { key_id: other.id, prompt_tokens: 1_000 });
  await gateway.gateway.app.get(UsageRollup).run();
  const days = (from: Date, to: Date) =>
    `/v1/usage?from=${from.toISOString().slice(0, 10)}&to=${to.toISOString().slice(0, 10)}`;
  const { status, headers, body } = await self(days(yesterday, now), key.key);
  expect(status).toBe(200);
  expect(headers.get('cache-control')).toBe('no-store');
  const today = {
    calls: 2,
    errors: 0,
    calls_without_tokens: 1,
    prompt_tokens: 10,
    completion_tokens: 5,
    total_tokens: 15,
    unpriced_calls: 0,
    cost_usd: '0.500000000',
    unknown_calls: 0,
    unknown_low_usd: null,
    unknown_high_usd: null,
    unbounded_calls: 0,
    saved_usd: null,
  };
  expect(body.today).toEqual(today);
  const isFirst = now.getUTCDate() === 1;
  expect(body.this_month).toMatchObject({ calls: isFirst ? 2 : 3, total_tokens: isFirst ? 15 : 30 });
  expect(body.days).toEqual([
    { day: now.toISOString().slice(0, 10), ...today },
    expect.objectContaining({ day: yesterday.toISOString().slice(0, 10), calls: 1, calls_without_tokens: 0 }),
  ]);
  expect((await self(days(yesterday, yesterday), key.key)).body.days).toHaveLength(1);
});

it('never keeps administrators waiting, however slow its reads are', async () => {
  const key = await createKey();
  const locking = new pg.Client({ connectionString: gateway.database.url });
  await locking.connect();
  await locking.query('BEGIN; LOCK TABLE usage_day IN ACCESS EXCLUSIVE MODE');
  const reads = [1, 2, 3].map(() => self('/v1/usage', key.key));
  await eventually(async () => {
    const [row] = await gateway.database.query<{ count: string }>(
      `SELECT count(*) FROM pg_stat_activity
       WHERE datname = current_database() AND wait_event_type = 'Lock' AND application_name = 'postern-self'`,
    );
    return Number(row!.count) === 2;
  });
  // Its pool has two connections as well.
  await gateway.admin('GET', '/requests?limit=1');
  expect(await gateway.admin('GET', '/usage?group_by=end_user')).toMatchObject({ source: 'log' });
  await locking.end();
  await Promise.all(reads);
});

it('takes no parameter that could name another key, and responds to errors as calls do', async () => {
  const [key, other] = [await createKey(), await createKey()];
  for (const path of [
    `/v1/key?id=${other.id}`,
    `/v1/usage?key=${other.id}`,
    '/v1/usage?from=2026-13-01',
    '/v1/usage?from=2026-02-02&to=2026-02-01',
    '/v1/usage?from=2020-01-01&to=2022-01-01',
    '/v1/usage?from=2020-01-01',
    '/v1/usage?to=9999-12-31',
  ]) {
    const { status, headers, body } = await self(path, key.key);
    expect([path, status]).toEqual([path, 400]);
    expect(headers.get('x-gateway-error')).toBe('bad_request');
    expect(body.error).toMatchObject({ type: 'invalid_request_error', param: null, code: 'bad_request' });
  }
  for (const path of [`/v1/keys/${other.id}`, `/v1/key/${other.id}`, '/v1', '/v2/key', '', '/v1/KEY']) {
    const { status, headers } = await self(path, key.key);
    expect([path, status, headers.get('x-gateway-error')]).toEqual([path, 404, 'not_found']);
  }
  expect((await fetch(`${gateway.url}/self/v1/key`, { method: 'POST' })).status).toBe(404);
  expect(provider.requests).toHaveLength(0);
});

it('rejects a key as on a call: missing, unknown, revoked, expired, and the admin token', async () => {
  const key = await createKey();
  expect((await self('/v1/key', key.key)).status).toBe(200);
  await gateway.admin('POST', `/keys/${key.id}/revoke`);
  const expired = await createKey({ expires_at: '2030-01-01T00:00:00Z' });
  await gateway.database.query(`UPDATE gateway_key SET expires_at = now() WHERE id = $1`, [expired.id]);
  for (const bad of [null, 'nonsense', key.key, expired.key, 'test-admin-token-0123456789']) {
    for (const path of ['/v1/key', '/v1/usage']) {
      const { status, headers, body } = await eventually(async () => {
        const reply = await self(path, bad);
        return reply.status === 401 && reply;
      });
      const call = await fetch(`${gateway.url}/v1/models`, {
        headers: bad === null ? {} : { authorization: `Bearer ${bad}` },
      });
      expect(status).toBe(call.status);
      expect(body).toEqual(await call.json());
      for (const name of ['x-gateway-error', 'www-authenticate', 'x-should-retry', 'content-type'])
        expect([name, headers.get(name)]).toEqual([name, call.headers.get(name)]);
    }
  }
});

it('limits how often a key reads, and no other key with it', async () => {
  const [key, other] = [await createKey(), await createKey()];
  const statuses: number[] = [];
  let last: Reply | undefined;
  for (let i = 0; i < 61; i++) {
    last = await self('/v1/key', key.key);
    statuses.push(last.status);
  }
  expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(60);
  expect(last!.status).toBe(429);
  expect(last!.headers.get('x-gateway-error')).toBe('too_many_requests');
  expect(Number(last!.headers.get('retry-after'))).toBeGreaterThan(0);
  expect((await self('/v1/key', other.key)).status).toBe(200);
});
