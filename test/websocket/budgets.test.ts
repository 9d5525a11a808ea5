import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { WebSocketSessions } from '../../src/proxy/websocket/websocket-sessions.service.js';
import { readDeadRows } from '../../src/request-log/journal/recovery.js';
import { LedgerService } from '../../src/limits/ledger/ledger.service.js';
import type { LogRow } from '../../src/request-log/columns.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { eventually } from '../support/eventually.js';
import { responseCompleted, responseDone, WsClient, WsProvider } from './ws-provider.js';

const REALTIME = '/v1/realtime?model=m';

let provider: WsProvider;
let gateway: TestGateway;
beforeAll(async () => {
  provider = await WsProvider.start();
  gateway = await startTestGateway({ PROVIDER_URL: provider.url, SHUTDOWN_GRACE_MS: '20000' });
  gateway.gateway.app.get(WebSocketSessions).usageEveryMs = 50;
  await gateway.admin('POST', '/prices', { catalog: 'default', model: 'm', input: '1', output: '10' });
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});
beforeEach(() => {
  provider.script = (socket) => {
    socket.on('message', (data: Buffer) => socket.send(responseDone(Number(data.toString()), 0)));
  };
});

let keys = 0;
async function limited(members: object): Promise<{ id: string; key: string }> {
  const made = await gateway.admin<{ id: string; team_id: string; key: string }>('POST', '/keys', {
    team: 'default',
    name: `limited-${++keys}`,
    websockets: true,
    ...members,
  });
  const ledger = gateway.gateway.app.get(LedgerService);
  await eventually(() => ledger.rulesOf(made.team_id, made.id) !== null);
  return made;
}

async function open(key: string, path = REALTIME): Promise<WsClient> {
  const client = WsClient.connect(gateway.url, path, { authorization: `Bearer ${key}` });
  await client.opened;
  return client;
}

/** What a new process would make of the journal, if this one died now. */
async function journalled(): Promise<Map<string, LogRow>> {
  const root = join(gateway.dataDir, 'journal');
  const files = await readdir(root, { recursive: true });
  const paths = files.filter((file) => file.endsWith('.log')).sort();
  const rows = new Map<string, LogRow>();
  for await (const batch of readDeadRows(paths.map((path) => join(root, path))))
    for (const row of batch) rows.set(row.id, row);
  return rows;
}

it.each([
  ['tokens', { tokens: 10_000, period: 'day' }, REALTIME],
  ['tokens on an endpoint without a model', { tokens: 10_000, period: 'day' }, '/v1/responses'],
  // A million input tokens cost 1 USD.
  ['USD', { usd: '0.05', period: 'day' }, REALTIME],
])('closes with 1008 once a budget in %s is spent, and charges what was used', async (_, budget, path) => {
  const { id, key } = await limited({ budgets: [budget] });
  const client = await open(key, path);
  client.socket.send('5000');
  await eventually(() => client.messages.length === 1);
  client.socket.send('60000');
  expect(await client.closed).toEqual({ code: 1008, reason: 'the budget is spent' });
  expect(await eventually(() => gateway.row(client.requestId))).toMatchObject({
    outcome: 'interrupted',
    error_code: 'insufficient_quota',
    prompt_tokens: 65_000,
    ...('usd' in budget ? { charge_usd: '0.065000000' } : { charge_tokens: '65000' }),
  });
  await eventually(async () => {
    const { data } = await gateway.admin<{ data: { used: string }[] }>('GET', `/limits?key=${id}`);
    return Number(data[0]!.used) === ('usd' in budget ? 0.065 : 65_000);
  });
  const next = WsClient.connect(gateway.url, path, { authorization: `Bearer ${key}` });
  const status = new Promise((resolve) =>
    next.socket.once('unexpected-response', (_, response) => resolve(response.statusCode)),
  );
  expect(await status).toBe(402);
});

it('goes on while the budget lasts, and reserves what was used', async () => {
  const { id, key } = await limited({ budgets: [{ tokens: 1_000_000, period: 'day' }] });
  const client = await open(key, '/v1/responses');
  client.socket.send('300000');
  await eventually(async () => {
    const { data } = await gateway.admin<{ data: { held: string }[] }>('GET', `/limits?key=${id}`);
    return Number(data[0]!.held) >= 300_000;
  });
  client.socket.close();
  await client.closed;
  expect(await eventually(() => gateway.row(client.requestId))).toMatchObject({ charge_tokens: '300000' });
});

it('takes a slot of a limit on concurrency for as long as it is open', async () => {
  const { key } = await limited({ limits: { concurrent_requests: 1 } });
  const client = await open(key);
  const second = WsClient.connect(gateway.url, REALTIME, { authorization: `Bearer ${key}` });
  const status = new Promise((resolve) =>
    second.socket.once('unexpected-response', (_, response) => resolve(response.statusCode)),
  );
  expect(await status).toBe(429);
  client.socket.close();
  await client.closed;
  await eventually(async () => {
    const third = WsClient.connect(gateway.url, REALTIME, { authorization: `Bearer ${key}` });
    const opened = await third.opened.then(
      () => true,
      () => false,
    );
    third.socket.terminate();
    return opened;
  });
});

it('sends a key with a budget in USD to plain HTTP where no price is known', async () => {
  const { key } = await limited({ budgets: [{ usd: '1', period: 'day' }] });
  const client = WsClient.connect(gateway.url, '/v1/responses', { authorization: `Bearer ${key}` });
  const status = new Promise((resolve) =>
    client.socket.once('unexpected-response', (_, response) =>
      resolve([response.statusCode, response.headers['x-gateway-error']]),
    ),
  );
  expect(await status).toEqual([426, 'upgrade_required']);
});

it('journals what was used so far, the newest of which counts', async () => {
  const key = await gateway.createKey({ websockets: true });
  const client = await open(key, '/v1/responses');
  for (const [sent, sum] of [
    [100, 100],
    [20, 120],
    [3, 123],
  ] as const) {
    provider.sockets.at(-1)!.send(responseCompleted(sent, 1));
    await eventually(async () => (await journalled()).get(client.requestId)?.prompt_tokens === sum);
  }
  const row = (await journalled()).get(client.requestId)!;
  expect(row).toMatchObject({ outcome: 'interrupted', status: null, completion_tokens: 3, model: 'gpt-5.6' });
  expect(JSON.parse(row.extra_usage!)).toMatchObject({
    responses: [{ responses: 3, shortest: 3, longest: 100, prompt_tokens: 123 }],
  });
  provider.sockets.at(-1)!.send(responseCompleted(1, 1));
  client.socket.close();
  await client.closed;
  expect(await eventually(() => gateway.row(client.requestId))).toMatchObject({ outcome: 'completed' });
});

describe('a rule that is set while a WebSocket is open', () => {
  const CHANGED = { code: 1008, reason: 'the limits of the gateway key have changed' };
  const usable = async () => {
    const made = await limited({ limits: { requests_per_minute: 1_000 } });
    return { ...made, client: await open(made.key) };
  };

  it.each<[string, object]>([
    ['a budget', { budgets: [{ usd: '1', period: 'day' }] }],
    ['a budget for each end user', { each_end_user: { budgets: [{ tokens: 1_000, period: 'day' }] } }],
    ['a rate of tokens', { limits: { tokens_per_minute: 1_000 } }],
    ['a number of calls at the same time', { limits: { concurrent_requests: 5 } }],
  ])('holds for it: %s', async (_, members) => {
    const { id, client } = await usable();
    await gateway.admin('PATCH', `/keys/${id}`, members);
    expect(await client.closed).toEqual(CHANGED);
    expect(await eventually(() => gateway.row(client.requestId))).toMatchObject({
      outcome: 'interrupted',
      error_code: 'rate_limit_exceeded',
    });
  });

  it('holds for it: a budget that only warned, and one that admitted unknown prices', async () => {
    const { id, key } = await limited({ budgets: [{ usd: '1', period: 'day', mode: 'warn' }] });
    let client = await open(key, '/v1/responses');
    await gateway.admin('PATCH', `/keys/${id}`, {
      budgets: [{ usd: '1', period: 'day', mode: 'block', unpriced: 'allow' }],
    });
    expect(await client.closed).toEqual(CHANGED);
    client = await open(key, '/v1/responses');
    await gateway.admin('PATCH', `/keys/${id}`, {
      budgets: [{ usd: '1', period: 'day', mode: 'block', unpriced: 'reject' }],
    });
    expect(await client.closed).toEqual(CHANGED);
  });

  it('holds for it on every replica, also one of its team', async () => {
    const team = await gateway.admin<{ id: string }>('POST', '/teams', { name: 'open-websockets' });
    const { key } = await gateway.admin<{ key: string }>('POST', '/keys', {
      team: 'open-websockets',
      name: 'replica',
      websockets: true,
    });
    const replica = await startTestGateway({ PROVIDER_URL: provider.url }, gateway.database);
    const client = WsClient.connect(replica.url, REALTIME, { authorization: `Bearer ${key}` });
    await client.opened;
    await gateway.admin('PATCH', `/teams/${team.id}`, { budgets: [{ tokens: 1_000, period: 'day' }] });
    expect(await client.closed).toEqual(CHANGED);
    await replica.stop();
  });

  it('closes it once a lowered amount is spent, and not if nothing is new', async () => {
    const { id, key } = await limited({ budgets: [{ tokens: 1_000_000, period: 'day' }] });
    const client = await open(key);
    client.socket.send('5000');
    await eventually(() => client.messages.length === 1);
    const patch = (members: object) => gateway.admin('PATCH', `/keys/${id}`, members);
    await patch({ budgets: [{ tokens: 2_000_000, period: 'day' }], limits: { requests_per_minute: 60 } });
    client.socket.send('6000');
    await eventually(() => client.messages.length === 2);
    expect(client.socket.readyState).toBe(client.socket.OPEN);
    await patch({ budgets: [{ tokens: 3_000, period: 'day' }] });
    expect(await client.closed).toEqual({ code: 1008, reason: 'the budget is spent' });
  });
});

it('opens so many WebSockets of one key, and more once one has ended', async () => {
  const sessions = gateway.gateway.app.get(WebSocketSessions);
  const most = sessions.mostOfKey;
  expect(most).toBeGreaterThan(1);
  sessions.mostOfKey = 2;
  try {
    const key = await gateway.createKey({ websockets: true });
    const clients = [await open(key), await open(key)];
    const rejected = WsClient.connect(gateway.url, REALTIME, { authorization: `Bearer ${key}` });
    const status = new Promise((resolve) =>
      rejected.socket.once('unexpected-response', (_, response) =>
        resolve([response.statusCode, response.headers['x-gateway-error']]),
      ),
    );
    expect(await status).toEqual([503, 'overloaded']);
    const other = await open(await gateway.createKey({ websockets: true }));
    clients[0]!.socket.close();
    await clients[0]!.closed;
    await eventually(async () => {
      const next = WsClient.connect(gateway.url, REALTIME, { authorization: `Bearer ${key}` });
      const opened = await next.opened.then(
        () => true,
        () => false,
      );
      next.socket.terminate();
      return opened;
    });
    for (const { socket } of [clients[1]!, other]) socket.terminate();
  } finally {
    sessions.mostOfKey = most;
  }
});

// The last test: it stops the gateway.
it('closes with 1001 when the gateway stops: at once when quiet, else before the grace ends', async () => {
  const key = await gateway.createKey({ websockets: true });
  const quiet = await open(key);
  const busy = await open(key);
  let [last, longestGap] = [performance.now(), 0];
  const talking = setInterval(() => {
    longestGap = Math.max(longestGap, performance.now() - last);
    last = performance.now();
    provider.sockets.at(-1)!.send('{"type":"delta"}');
  }, 50);
  let stillOpen = true;
  void busy.closed.then(() => (stillOpen = false));
  const stopping = gateway.gateway.stop();
  expect(await quiet.closed).toMatchObject({ code: 1001 });
  // A machine that is busy for a second makes it quiet too.
  const wasQuiet = Math.max(longestGap, performance.now() - last) > 900;
  expect(stillOpen || wasQuiet).toBe(true);
  clearInterval(talking);
  expect(await busy.closed).toMatchObject({ code: 1001 });
  await stopping;
  for (const { requestId } of [quiet, busy])
    expect(await gateway.row(requestId)).toMatchObject({
      outcome: 'interrupted',
      error_code: 'shutting_down',
    });
});
