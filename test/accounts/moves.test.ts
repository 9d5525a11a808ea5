import { ProvidersService } from '../../src/providers/providers.service.js';
import { RequestLogService } from '../../src/request-log/request-log.service.js';
import { SHARED } from '../providers/stored.js';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { RawClient, request } from '../support/raw-client.js';
import { answer, chunk, LAST_CHUNK, RawProvider, STREAM_HEAD } from '../support/raw-provider.js';
import { WsClient, WsProvider } from '../websocket/ws-provider.js';

/* A provider that moves to another team, or ends, while three replicas serve calls to it. */

interface Issued {
  id: string;
  key: string;
}

let provider: RawProvider;
let other: RawProvider;
let replicas: TestGateway[];
const keys = {} as Record<'search' | 'ads', Issued>;
/** Ends the response of a call to /v1/slow. */
let finish: () => void = () => {};
beforeAll(async () => {
  provider = await RawProvider.start(async (req) => {
    await req.body.catch(() => {});
    if (!req.head.includes('/v1/slow')) return void req.socket.write(answer('200 OK', [], 'account'));
    req.socket.write(STREAM_HEAD);
    req.socket.write(chunk('first'));
    await new Promise<void>((resolve) => (finish = resolve));
    req.socket.write(chunk('last'));
    req.socket.write(LAST_CHUNK);
  });
  other = await RawProvider.start(async (req) => {
    await req.body;
    req.socket.write(answer('503 Service Unavailable', ['retry-after: 1'], 'busy'));
  });
  const first = await startTestGateway(SHARED);
  replicas = [first];
  for (let i = 0; i < 2; i++) replicas.push(await startTestGateway(SHARED, first.database));
  for (const team of ['search', 'ads'] as const) {
    await admin('POST', '/teams', { name: team });
    const rights = { endpoints: 'all', websockets: true, idempotency: 'replay' };
    keys[team] = await admin('POST', '/keys', { team, name: 'jobs', ...rights });
  }
});
afterAll(async () => {
  for (const replica of replicas.reverse()) await replica.stop();
  await provider.stop();
  await other.stop();
});

const admin = <T>(method: string, path: string, body?: object): Promise<T> =>
  replicas[0]!.admin<T>(method, path, body);
async function remove(path: string): Promise<void> {
  const response = await fetch(`${replicas[0]!.url}/admin/v1${path}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  if (response.status !== 204) throw new Error(`${response.status} ${await response.text()}`);
}
let names = 0;
async function add(members: object = {}): Promise<string> {
  const name = `account-${++names}`;
  await admin('POST', '/providers', {
    name,
    url: provider.url,
    secret: `sk-of-${name}-0123456789`,
    ...members,
  });
  await eventually(() =>
    replicas.every(({ gateway }) => gateway.app.get(ProvidersService).find(name) !== null),
  );
  return name;
}

async function outcome(
  replica: TestGateway,
  path: string,
  { key }: Issued,
  init: RequestInit = {},
): Promise<string> {
  const response = await fetch(replica.url + path, {
    ...init,
    headers: { authorization: `Bearer ${key}`, ...init.headers },
  });
  const body = await response.text();
  const code = response.headers.get('x-gateway-error');
  return code === null ? body : `${response.status} ${code}`;
}
const NOT_ALLOWED = '403 provider_not_allowed';
const post = (headers: Record<string, string> = {}) => ({ method: 'POST', body: '{"model":"m"}', headers });

/** Waits until every replica says this. */
const everywhere = (path: string, key: Issued, expected: string) =>
  eventually(async () => {
    const all = await Promise.all(replicas.map((replica) => outcome(replica, path, key)));
    return all.every((one) => one === expected);
  });

it('takes a provider from one team and gives it to another, on every replica', async () => {
  const name = await add();
  const path = `/p/${name}/v1/files`;
  await everywhere(path, keys.search, 'account');
  await everywhere(path, keys.ads, 'account');
  await admin('PATCH', `/providers/${name}`, { team: 'search' });
  await everywhere(path, keys.ads, NOT_ALLOWED);
  await everywhere(path, keys.search, 'account');
  await admin('PATCH', `/providers/${name}`, { team: 'ads' });
  await everywhere(path, keys.search, NOT_ALLOWED);
  await everywhere(path, keys.ads, 'account');
  await admin('PATCH', `/providers/${name}`, { team: null });
  await everywhere(path, keys.search, 'account');
});

it('gives a name to another team: a key that used it before is rejected', async () => {
  const name = await add({ team: 'search' });
  const path = `/p/${name}/v1/files`;
  await everywhere(path, keys.search, 'account');
  await remove(`/providers/${name}`);
  const secret = 'sk-of-another-0123456789';
  await admin('POST', '/providers', { name, url: provider.url, secret, team: 'ads' });
  await everywhere(path, keys.search, NOT_ALLOWED);
  await everywhere(path, keys.ads, 'account');
});

it('changes where /v1 goes for a team alone, and what its keys may use', async () => {
  const name = await add({ team: 'search' });
  await everywhere('/v1/files', keys.search, '503 no_provider_configured');
  await admin('PATCH', '/teams/search', { default_provider: name });
  await everywhere('/v1/files', keys.search, 'account');
  await everywhere('/v1/files', keys.ads, '503 no_provider_configured');
  const shared = await add();
  await admin('PATCH', '/teams/search', { providers: [name] });
  await everywhere(`/p/${shared}/v1/files`, keys.search, NOT_ALLOWED);
  await everywhere(`/p/${shared}/v1/files`, keys.ads, 'account');
  await admin('PATCH', '/teams/search', { providers: null, default_provider: null });
  await everywhere(`/p/${shared}/v1/files`, keys.search, 'account');
});

it.each([
  ['moved', (name: string) => admin('PATCH', `/providers/${name}`, { team: 'ads' }), NOT_ALLOWED],
  ['removed', (name: string) => remove(`/providers/${name}`), '404 provider_not_found'],
  [
    'taken from a disabled team',
    () => admin('PATCH', '/teams/search', { disabled: true }),
    '401 invalid_api_key',
  ],
])(
  'lets calls in flight end when their provider is %s, and rejects the next',
  async (_, change, rejection) => {
    const name = await add({ team: 'search' });
    const path = `/p/${name}/v1/slow`;
    const response = await fetch(replicas[1]!.url + path, {
      headers: { authorization: `Bearer ${keys.search.key}` },
    });
    const reader = response.body!.getReader();
    expect(Buffer.from((await reader.read()).value).toString()).toBe('first');
    await change(name);
    await everywhere(`/p/${name}/v1/files`, keys.search, rejection);
    finish();
    expect(Buffer.from((await reader.read()).value).toString()).toBe('last');
    expect((await reader.read()).done).toBe(true);
    await admin('PATCH', '/teams/search', { disabled: false });
    await everywhere('/p/none/v1/files', keys.search, '404 provider_not_found');
  },
);

it('rejects a call whose provider is moved while its body is awaited', async () => {
  const name = await add({ team: 'search' });
  const [replica] = replicas as [TestGateway];
  const { app } = replica.gateway;
  const client = await RawClient.connect(replica.port);
  const head = [`Authorization: Bearer ${keys.search.key}`, 'Content-Length: 13'];
  client.send(request(`POST /p/${name}/v1/chat/completions`, head));
  client.send('{"model"');
  await eventually(() => app.get(RequestLogService).openCount === 1);
  const before = provider.requests.length;
  await admin('PATCH', `/providers/${name}`, { team: 'ads' });
  client.send(':"m"}');
  const reply = await client.answer();
  client.destroy();
  expect([reply.status, reply.header('x-gateway-error')]).toEqual([403, 'provider_not_allowed']);
  expect(provider.requests.length).toBe(before);
});

it('sends no further attempt of a route to a target that was moved', async () => {
  const name = await add();
  const [replica] = replicas as [TestGateway];
  await admin('POST', '/providers', { name: 'busy', url: other.url, secret: null });
  const route = { name: 'both', targets: [{ provider: 'busy' }, { provider: name }] };
  await admin('POST', '/routes', route);
  let moved: Promise<unknown> = Promise.resolve();
  other.script = async (req) => {
    await req.body;
    moved = admin('PATCH', `/providers/${name}`, { team: 'ads' });
    await moved;
    req.socket.write(answer('503 Service Unavailable', ['retry-after: 1'], 'busy'));
  };
  const before = provider.requests.length;
  expect(await outcome(replica, '/p/both/v1/chat/completions', keys.search, post())).toBe('busy');
  await moved;
  expect(provider.requests.length).toBe(before);
  expect(await outcome(replica, '/p/both/v1/chat/completions', keys.search, post())).toBe(NOT_ALLOWED);
  await remove('/routes/both');
});

it('closes a WebSocket to a provider that is moved', async () => {
  const sockets = await WsProvider.start();
  const name = await add({ url: sockets.url, team: 'search' });
  const client = WsClient.connect(replicas[2]!.url, `/p/${name}/v1/realtime?model=m`, {
    authorization: `Bearer ${keys.search.key}`,
  });
  await client.opened;
  await admin('PATCH', `/providers/${name}`, { team: 'ads' });
  expect(await client.closed).toEqual({ code: 1008, reason: 'its provider is for another team' });
  await sockets.stop();
});

it('returns neither cached nor stored responses from a provider that the team has lost', async () => {
  const name = await add();
  const [replica] = replicas as [TestGateway];
  const cached = await admin<Issued>('POST', '/keys', {
    ...{ team: 'search', name: `cached-${name}`, cache: { ttl_seconds: 600, shared: 'team' } },
  });
  const path = `/p/${name}/v1/chat/completions`;
  const again = post({ 'idempotency-key': `once-${name}` });
  const hit = async () => {
    const headers = { authorization: `Bearer ${cached.key}` };
    const response = await fetch(replica.url + path, { ...post(), headers });
    return response.headers.get('x-gateway-cache');
  };
  await eventually(async () => (await hit()) === 'hit');
  expect(await outcome(replica, path, keys.search, again)).toBe('account');
  await eventually(async () => {
    const headers = { ...again.headers, authorization: `Bearer ${keys.search.key}` };
    const response = await fetch(replica.url + path, { ...again, headers });
    return response.headers.get('idempotent-replayed') === 'true';
  });
  await admin('PATCH', `/providers/${name}`, { team: 'ads' });
  expect(await outcome(replica, path, cached, post())).toBe(NOT_ALLOWED);
  expect(await outcome(replica, path, keys.search, again)).toBe(NOT_ALLOWED);
  // The same call of the other team is one of its own.
  const before = provider.requests.length;
  expect(await outcome(replica, path, keys.ads, again)).toBe('account');
  expect(provider.requests.length).toBe(before + 1);
});

it('neither moves nor removes what calls of a team go to by default', async () => {
  const name = await add({ team: 'search' });
  await admin('POST', '/routes', { name: 'main', targets: [{ provider: name }] });
  for (const byDefault of [name, 'main']) {
    await admin('PATCH', '/teams/search', { default_provider: byDefault });
    await expect(admin('PATCH', `/providers/${name}`, { team: 'ads' })).rejects.toThrow(
      /409 .*is the default_provider of search/,
    );
  }
  await expect(remove('/routes/main')).rejects.toThrow(/409 .*default_provider of teams.*: search/);
  await admin('PATCH', '/teams/search', { default_provider: name });
  await remove('/routes/main');
  await expect(remove(`/providers/${name}`)).rejects.toThrow(/409 .*default_provider of teams.*: search/);
  await admin('PATCH', '/teams/search', { default_provider: null });
  await remove(`/providers/${name}`);
});

it('takes changes of teams, providers, routes and files at the same time', async () => {
  const mine = await add({ team: 'search' });
  const document = { teams: [{ name: 'search', default_provider: mine }] };
  const results = await Promise.allSettled(
    Array.from({ length: 4 }, (_, i) => i).flatMap((i) => [
      admin('PATCH', '/teams/search', { default_provider: i % 2 === 0 ? mine : null }),
      admin('PATCH', `/providers/${mine}`, { team: i % 2 === 0 ? 'search' : 'ads' }),
      admin('POST', '/providers', { name: `new-${i}`, url: provider.url, secret: null, team: 'search' }),
      admin('POST', '/routes', { name: `route-${i}`, targets: [{ provider: mine }] }),
      admin('POST', '/apply', { document }),
    ]),
  );
  const failures = results.flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []));
  // A deadlock gets 503.
  expect(failures.filter((text) => !/: 4\d\d /.test(text))).toEqual([]);
  const [{ wrong }] = (await replicas[0]!.database.query<{ wrong: number }>(
    `SELECT count(*)::int AS wrong FROM team t JOIN provider p ON p.name = t.default_provider WHERE p.team_id <> t.id`,
  )) as [{ wrong: number }];
  expect(wrong).toBe(0);
});
