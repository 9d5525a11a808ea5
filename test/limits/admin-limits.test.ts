import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { LedgerService } from '../../src/limits/ledger/ledger.service.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { PostgresRelay } from '../support/postgres-relay.js';
import { sendTo } from './limited-gateway.js';
import { createDays } from '../request-log/rows.js';
import { logRow } from '../request-log/rows.js';
import { insertRows } from './settled-rows.js';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway({ MASTER_KEY: randomBytes(32).toString('base64') });
});
afterAll(() => gateway.stop());

interface Limit {
  id: string;
  resource: string;
  subject: string | null;
  [name: string]: unknown;
}

const limitsOf = (key: string) =>
  gateway.admin<{ data: Limit[] }>('GET', `/limits?key=${key}`).then(({ data }) => data);

const LIMITS = {
  limits: { requests_per_minute: 600, tokens_per_minute: null, concurrent_requests: 20 },
  budgets: [
    { usd: '500.00', period: 'month', mode: 'block', alert_at: [] },
    { tokens: 2_000_000, period: 'day', mode: 'warn', alert_at: [80, 100] },
  ],
  each_end_user: {
    requests_per_minute: 20,
    tokens_per_minute: null,
    concurrent_requests: null,
    budgets: [{ usd: '2.00', period: 'day', mode: 'block', alert_at: [] }],
  },
};
const NONE = { limits: null, budgets: [], each_end_user: null };

async function createKey(members: object): Promise<{ id: string; team_id: string; key: string }> {
  const name = randomBytes(6).toString('hex');
  return gateway.admin('POST', '/keys', { team: 'default', name, ...members });
}

never('stores the limits of a key, shows them, and changes one member without the others', async () => {
  const key = await createKey({
    limits: { requests_per_minute: 600, concurrent_requests: 20 },
    budgets: [
      { usd: '500', period: 'month' },
      { tokens: 2_000_000, period: 'day', mode: 'warn', alert_at: [100, 80] },
    ],
    each_end_user: { requests_per_minute: 20, budgets: [{ usd: '2.00', period: 'day' }] },
  });
  expect(key).toMatchObject(LIMITS);
  const ids = (await limitsOf(key.id)).map(({ id }) => id).sort();
  expect(ids).toHaveLength(6);
  const only = await gateway.admin<{ data: { id: string }[] }>('GET', `/limits?id=${ids[2]}`);
  expect(only.data.map(({ id }) => id)).toEqual([ids[2]]);

  const budgets = [{ usd: '750.50', period: 'month', mode: 'block', alert_at: [] }, LIMITS.budgets[1]];
  const changed = await gateway.admin<object>('PATCH', `/keys/${key.id}`, { budgets });
  expect(changed).toMatchObject({ ...LIMITS, budgets, version: 2 });
  // The budget kept its id, and with it what was used.
  expect((await limitsOf(key.id)).map(({ id }) => id).sort()).toEqual(ids);
  // The same again changes nothing.
  expect(await gateway.admin('PATCH', `/keys/${key.id}`, { budgets })).toMatchObject({ version: 2 });

  const none = { limits: null, budgets: null, each_end_user: null };
  expect(await gateway.admin('PATCH', `/keys/${key.id}`, none)).toMatchObject(NONE);
  expect(await limitsOf(key.id)).toEqual([]);
  const audit = await gateway.admin<{ data: { before: object; after: object }[] }>(
    'GET',
    `/audit?subject_id=${key.id}&action=changed`,
  );
  expect(audit.data[0]).toMatchObject({ before: { limits: LIMITS.limits }, after: NONE });
});

it('names an unknown member of a nested object by its path, with the members that this object may have', async () => {
  const { id } = await createKey({});
  const messageFor = (body: object) =>
    gateway.admin('PATCH', `/keys/${id}`, body).then(
      () => 'accepted',
      (error: Error) => error.message,
    );
  expect(await messageFor({ limits: { rpm: 5 } })).toContain(
    'limits.rpm: unknown field; allowed are requests_per_minute, tokens_per_minute, concurrent_requests"',
  );
  const budget = { usd: '5', period: 'day', alert: [80] };
  const allowed =
    'usd, tokens, period, mode, alert_at, unpriced, reservation, providers, models, count_from"';
  expect(await messageFor({ budgets: [budget] })).toContain(
    `budgets.0.alert: unknown field; allowed are ${allowed}`,
  );
  expect(await messageFor({ each_end_user: { budgets: [budget] } })).toContain(
    `each_end_user.budgets.0.alert: unknown field; allowed are ${allowed}`,
  );
  expect(await messageFor({ each_end_user: { budget: [] } })).toContain(
    'each_end_user.budget: unknown field; allowed are requests_per_minute, tokens_per_minute, concurrent_requests, budgets"',
  );
  expect(await messageFor({ budget: [] })).toMatch(/"budget: unknown field; allowed are name, /);
});

it('stores the limits of a team', async () => {
  const team = await gateway.admin<{ id: string }>('POST', '/teams', { name: 'limited', ...LIMITS });
  expect(team).toMatchObject(LIMITS);
  expect(await gateway.admin('PATCH', `/teams/${team.id}`, { limits: null })).toMatchObject({
    ...LIMITS,
    limits: null,
  });
  const { data } = await gateway.admin<{ data: Limit[] }>('GET', '/limits?team=limited');
  expect(data).toHaveLength(4);
  expect(data[0]).toMatchObject({ team: 'limited', key: null });
});

it.each([
  [{ budgets: [{ usd: 5, period: 'month' }] }],
  [{ budgets: [{ usd: '5.0000000001', period: 'month' }] }],
  [{ budgets: [{ usd: '5', period: 'year' }] }],
  [{ budgets: [{ usd: '5', tokens: 5, period: 'month' }] }],
  [{ budgets: [{ period: 'month' }] }],
  [
    {
      budgets: [
        { usd: '5', period: 'month' },
        { usd: '6', period: 'month' },
      ],
    },
  ],
  [{ budgets: Array.from({ length: 5 }, () => ({ usd: '5', period: 'month' })) }],
  [{ limits: { requests_per_minute: -1 } }],
  [{ limits: { requests_per_day: 1 } }],
])('rejects %j', async (members) => {
  await expect(createKey(members)).rejects.toThrow(/: 400 /);
});

it.each<Record<string, string>>([{ REQUEST_LOG_USERS: 'none' }, { ATTRIBUTION: 'off' }])(
  'rejects limits of end users with %j',
  async (setting) => {
    const blind = await startTestGateway({ ...setting, MASTER_KEY: randomBytes(32).toString('base64') });
    const members = { each_end_user: { requests_per_minute: 1 } };
    await expect(blind.admin('POST', '/keys', { team: 'default', name: 'k', ...members })).rejects.toThrow(
      /: 400 .*each_end_user/,
    );
    await expect(blind.admin('POST', '/teams', { name: 't', ...members })).rejects.toThrow(/: 400 /);
    await blind.admin('POST', '/keys', { team: 'default', name: 'k', each_end_user: null });
    await blind.stop();
  },
);

never(
  'shows what was used and gives a budget its amount again, with the reason in the audit log',
  async () => {
    const key = await createKey({ budgets: [{ usd: '10', period: 'month', alert_at: [50] }] });
    const row = logRow(Date.now(), {
      key_id: key.id,
      team_id: key.team_id,
      charge_usd: '10',
      cost_usd: '10',
    });
    await createDays(gateway.database, Date.now());
    const { text, values } = insertRows([row]);
    await gateway.database.query(text, values);
    const [limit] = await limitsOf(key.id);
    expect(limit).toMatchObject({
      scope: 'key',
      team: 'default',
      owner_id: key.id,
      resource: 'usd',
      period: 'month',
      amount: '10.00',
      used: '10.00',
      held: '0.00',
      left: '0.00',
      credited: '0.00',
      state: 'exhausted',
      refused: 0,
    });
    expect(await limitsOf(`${key.id}&state=ok`)).toEqual([]);
    expect(await limitsOf(`${key.id}&state=exhausted`)).toHaveLength(1);

    await expect(gateway.admin('POST', `/limits/${limit!.id}/reset`, {})).rejects.toThrow(/: 400 .*reason/);
    const after = await gateway.admin('POST', `/limits/${limit!.id}/reset`, { reason: 'pilot extended' });
    // What was spent stays: it is the sum of the charges in the log.
    expect(after).toMatchObject({ used: '10.00', credited: '10.00', left: '10.00', state: 'warned' });
    const { data } = await gateway.admin<{ data: object[] }>('GET', `/audit?subject_id=${limit!.id}`);
    expect(data).toMatchObject([
      {
        action: 'reset',
        subject_type: 'limit',
        before: { credited: '0.00' },
        after: { credited: '10.00', reason: 'pilot extended' },
      },
    ]);
  },
);

it('shows a limit that has rejected billions of calls, and gives a budget at the highest value that is counted its amount again', async () => {
  const most = 4n * 10n ** 18n;
  const key = await createKey({ budgets: [{ usd: '10', period: 'total' }] });
  const [limit] = await limitsOf(key.id);
  await gateway.database.query(
    'INSERT INTO limit_meter (rule_id, window_start, spent, refused) VALUES ($1, to_timestamp(0), $2, 3000000000)',
    [limit!.id, String(most)],
  );
  expect(await limitsOf(key.id)).toMatchObject([{ refused: 3_000_000_000, left: '0.00' }]);
  await gateway.admin('POST', `/limits/${limit!.id}/reset`, { reason: 'a provider reported nonsense' });
  await createDays(gateway.database, Date.now());
  const row = logRow(Date.now(), { key_id: key.id, team_id: key.team_id, charge_usd: '4', cost_usd: '4' });
  const { text, values } = insertRows([row]);
  await gateway.database.query(text, values);
  expect(await limitsOf(key.id)).toMatchObject([{ left: '6.00', state: 'ok' }]);
});

it('removes a limit whose meter is locked without waiting, and what was used of it later', async () => {
  const key = await createKey({ budgets: [{ usd: '10', period: 'total' }] });
  const [limit] = await limitsOf(key.id);
  const meters = () =>
    gateway.database.query(
      'SELECT rule_id FROM limit_meter WHERE rule_id = $1 UNION ALL SELECT rule_id FROM limit_hold WHERE rule_id = $1',
      [limit!.id],
    );
  await gateway.database.query(
    'INSERT INTO limit_meter (rule_id, window_start) VALUES ($1, to_timestamp(0))',
    [limit!.id],
  );
  const client = new pg.Client({ connectionString: gateway.database.url });
  await client.connect();
  await client.query('BEGIN');
  await client.query('SELECT FROM limit_meter WHERE rule_id = $1 FOR UPDATE', [limit!.id]);
  await gateway.admin('PATCH', `/keys/${key.id}`, { budgets: [] });
  // An exchange that began before has granted something of it.
  await client.query(
    `INSERT INTO limit_hold (rule_id, subject, window_start, process, amount)
     VALUES ($1, '', to_timestamp(0), gen_random_uuid(), 1)`,
    [limit!.id],
  );
  await client.query('COMMIT');
  await client.end();
  expect(await meters()).toHaveLength(2);
  await gateway.database.query('SELECT limit_sweep()');
  expect(await meters()).toEqual([]);
});

it('does not reset a rate, nor what is not there', async () => {
  const key = await createKey({ limits: { requests_per_minute: 1 } });
  const [limit] = await limitsOf(key.id);
  const reason = { reason: 'x' };
  await expect(gateway.admin('POST', `/limits/${limit!.id}/reset`, reason)).rejects.toThrow(/: 400 /);
  await expect(gateway.admin('POST', `/limits/${key.id}/reset`, reason)).rejects.toThrow(/: 404 /);
});

it('has the limits of a new key in force at its first call, on a replica that gets no notifications', async () => {
  const relay = await PostgresRelay.to(gateway.database.url);
  const replica = await startTestGateway(
    {
      MASTER_KEY: randomBytes(32).toString('base64'),
      DATABASE_URL: relay.url,
      PROVIDER_URL: 'http://127.0.0.1:9',
    },
    gateway.database,
  );
  relay.set('postern-changes/2', 'cut');
  const team = await gateway.admin<{ id: string }>('POST', '/teams', {
    name: 'first-call',
    limits: { requests_per_minute: 0 },
  });
  const name = 'first-call';
  const ofTeam = await gateway.admin<{ key: string }>('POST', '/keys', { team: team.id, name });
  const ofKey = await createKey({ limits: { requests_per_minute: 0 } });
  for (const { key } of [ofTeam, ofKey])
    expect(await sendTo(replica.url, key, { model: 'm' })).toMatchObject({ status: 429 });
  // A change of a limit reaches it with the key, too.
  await gateway.admin('PATCH', `/keys/${ofKey.id}`, { limits: { requests_per_minute: 9 } });
  await eventually(async () => (await sendTo(replica.url, ofKey.key, { model: 'm' })).status !== 429);
  await replica.stop();
  await relay.close();
});

it('has a changed limit in force on every replica within a second, and reports its metrics', async () => {
  const replica = await startTestGateway(
    { MASTER_KEY: randomBytes(32).toString('base64') },
    gateway.database,
  );
  const ledgers = [gateway, replica].map((one) => one.gateway.app.get(LedgerService));
  const key = await createKey({ limits: { requests_per_minute: 5 } });
  for (const ledger of ledgers)
    await eventually(() => ledger.rulesOf(key.team_id, key.id)?.rules[0]?.amount === 5n);
  await gateway.admin('PATCH', `/keys/${key.id}`, { limits: { requests_per_minute: 7 } });
  for (const ledger of ledgers)
    await eventually(() => ledger.rulesOf(key.team_id, key.id)?.rules[0]?.amount === 7n);
  await eventually(() => ledgers[0]!.exchange.counts.ok > 0);
  const metrics = await fetch(`${gateway.url}/metrics`, {
    headers: { authorization: 'Bearer test-admin-token-0123456789' },
  }).then((response) => response.text());
  for (const name of [
    'postern_limit_exchanges_total{result="failed"} ',
    'postern_limit_exchange_seconds_count',
    'postern_limit_waiting_calls 0',
    'postern_budgets_exhausted 0',
  ]) {
    expect(metrics).toContain(name);
  }
});

never(
  'changes the limits of the installation with If-Match only as they were read, also by two admins at once',
  async () => {
    const url = `${gateway.url}/admin/v1/limits/installation`;
    const authorization = `Bearer ${ADMIN_TOKEN}`;
    const read = await fetch(url, { headers: { authorization } });
    const tag = read.headers.get('etag')!;
    const { version } = (await read.json()) as { version: number };
    const change = (requests: number, ifMatch = tag) =>
      fetch(url, {
        method: 'PATCH',
        headers: { authorization, 'content-type': 'application/json', 'if-match': ifMatch },
        body: JSON.stringify({ limits: { requests_per_minute: requests } }),
      });
    const replies = await Promise.all([1_000_001, 1_000_002, 1_000_003].map((requests) => change(requests)));
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    const won = replies.find(({ status }) => status === 200)!;
    expect(won.headers.get('etag')).not.toBe(tag);
    expect(await won.json()).toMatchObject({ version: version + 1 });
    const lost = replies.find(({ status }) => status === 409)!;
    expect(await lost.text()).toContain('was changed meanwhile; read it again');
    // A change that changes nothing leaves the tag as it is.
    const present = (await (await fetch(url, { headers: { authorization } })).json()) as {
      limits: { requests_per_minute: number };
    };
    const same = await change(present.limits.requests_per_minute, won.headers.get('etag')!);
    expect([same.status, same.headers.get('etag')]).toEqual([200, won.headers.get('etag')]);
    await gateway.admin('PATCH', '/limits/installation', { limits: null });
  },
);
