import { randomBytes } from 'node:crypto';
import { UrlPolicy } from '../../src/policies-by-url/decision/url-policy.js';
import { PolicyDirectory } from '../../src/policies-by-url/policy-directory.service.js';
import type { PolicyCall } from '../../src/proxy/policies/policy-call.js';
import { Scrape } from '../observability/scrape.js';
import { changesApplied } from '../support/changes-applied.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { RawClient, request } from '../support/raw-client.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { WsClient, WsProvider } from '../websocket/ws-provider.js';
import { allow, createPolicy, decide, deny, Filter, newSecret, removePolicies } from './filter.js';

const MASTER_KEY = randomBytes(32).toString('base64');
const CHAT = '/v1/chat/completions';

let provider: RawProvider;
let sockets: WsProvider;
let filter: Filter;
let postern: TestGateway;
beforeAll(async () => {
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', ['Content-Type: application/json'], '{"model":"m-1"}'));
  });
  sockets = await WsProvider.start();
  filter = await new Filter().listen();
  postern = await startTestGateway({ PROVIDER_URL: provider.url, MASTER_KEY });
  await postern.admin('POST', '/providers', { name: 'sockets', url: sockets.url, secret: null });
  await postern.admin('POST', '/teams', { name: 'other' });
});
afterAll(async () => {
  await postern.stop();
  await filter.close();
  await provider.stop();
  await sockets.stop();
});
beforeEach(async () => {
  await removePolicies(postern);
  filter.asked.length = 0;
  filter.respond = allow;
  provider.requests.length = 0;
});

interface Sent {
  body?: string;
  line?: string;
  headers?: string[];
  to?: TestGateway;
}

async function send(
  key: string,
  { body = '{"model":"m"}', line = `POST ${CHAT}`, headers = [], to = postern }: Sent = {},
) {
  const client = await RawClient.connect(to.port);
  client.send(request(line, [`Authorization: Bearer ${key}`, ...headers], body));
  const reply = await client.answer();
  client.destroy();
  return reply;
}

/** How many questions one call leads to. */
async function askedBy(key: string, sent?: Sent): Promise<number> {
  filter.asked.length = 0;
  expect((await send(key, sent)).status).toBe(200);
  return filter.asked.length;
}

let keys = 0;
async function keyOf(settings: object = {}): Promise<{ id: string; key: string; name: string }> {
  return postern.admin('POST', '/keys', { team: 'default', name: `key ${++keys}`, ...settings });
}

it('is asked about the calls of its teams and of its keys, and about no others', async () => {
  const own = await keyOf();
  const listed = await keyOf();
  const ofTeam = await keyOf({ team: 'other' });
  const { id } = await createPolicy(postern, filter, {
    applies_to: { teams: ['other'], keys: [`default/${listed.name}`] },
  });
  expect(await askedBy(own.key)).toBe(0);
  expect(await askedBy(listed.key)).toBe(1);
  expect(await askedBy(ofTeam.key)).toBe(1);
  await postern.admin('PATCH', `/policies/${id}`, { applies_to: { keys: [own.id] } });
  expect(await askedBy(own.key)).toBe(1);
  expect(await askedBy(listed.key)).toBe(0);
  await postern.admin('PATCH', `/policies/${id}`, { applies_to: {} });
  expect(await askedBy(listed.key)).toBe(1);
  await postern.admin('PATCH', `/policies/${id}`, { enabled: false });
  expect(await askedBy(listed.key)).toBe(0);
});

it('is asked about its models, and about what may be any model', async () => {
  await createPolicy(postern, filter, { applies_to: { models: ['gpt-5*', 'o3'] } });
  const { key } = await keyOf({ endpoints: 'all' });
  const asked = async (body: string, line?: string) => [
    await askedBy(key, { body, line }),
    filter.asked[0]?.call.model,
  ];
  expect(await asked('{"model":"gpt-5-mini"}')).toEqual([1, 'gpt-5-mini']);
  expect(await asked('{"model":"o3"}')).toEqual([1, 'o3']);
  expect(await asked('{"model":"o3-mini"}')).toEqual([0, undefined]);
  // Two members, a body that is no JSON, and endpoints that name no model.
  expect(await asked('{"model":"o3-mini","model":"o3"}')).toEqual([1, null]);
  expect(await asked('{"model":"o3-mini","Model":"o3"}')).toEqual([1, null]);
  expect(await asked('model=o3-mini')).toEqual([1, null]);
  expect(await asked('{"model":"o3-mini"}', 'POST /v1/batches')).toEqual([1, null]);
  expect(await asked('{}', 'POST /p/default/v1beta/models/o3:generateContent')).toEqual([1, 'o3']);
  expect(await asked('{}', 'POST /p/default/v1beta/models/gemini-3:generateContent')).toEqual([0, undefined]);
});

it('is asked about the model that the URL of a provider names, not about the one in the body', async () => {
  const url = `${provider.url}/openai/deployments/o3`;
  await postern.admin('POST', '/providers', { name: 'deployment', url, secret: null });
  await postern.admin('POST', '/routes', { name: 'mixed', targets: [{ provider: 'deployment' }] });
  const { key } = await keyOf();
  await createPolicy(postern, filter, { applies_to: { models: ['o3'] } });
  for (const name of ['deployment', 'mixed']) {
    const line = `POST /p/${name}/chat/completions`;
    expect(await askedBy(key, { body: '{"model":"o3-mini"}', line })).toBe(1);
    expect(filter.asked[0]!.call.model).toBe('o3');
  }
});

it('lets a decision count for calls like it, for as long as it says', async () => {
  const { id } = await createPolicy(postern, filter, { cache_seconds: 86_400 });
  const one = await keyOf();
  const other = await keyOf();
  const call = (settings: Partial<Sent> & { user?: string; model?: string } = {}) => {
    const { user, model = 'm', ...sent } = settings;
    return { body: JSON.stringify({ model, user, messages: [] }), ...sent };
  };
  expect(await askedBy(one.key, call())).toBe(1);
  expect(await askedBy(one.key, call())).toBe(0);
  // With head, the rest of the body does not count.
  expect(await askedBy(one.key, { body: '{"model":"m","messages":["other"]}' })).toBe(0);
  expect(await askedBy(other.key, call())).toBe(1);
  expect(await askedBy(one.key, call({ user: 'u' }))).toBe(1);
  expect(await askedBy(one.key, call({ model: 'n' }))).toBe(1);
  expect(await askedBy(one.key, call({ line: 'POST /v1/responses' }))).toBe(1);
  expect(await askedBy(one.key, call({ headers: ['x-gateway-tags: a=1'] }))).toBe(1);
  expect(await askedBy(one.key, call({ headers: ['x-gateway-tags: a=1'] }))).toBe(0);
  const cached = (await Scrape.of(postern.url)).sum('postern_policy_decisions_total', { from: 'cache' });
  expect(cached).toBe(3);
  // A change is another version.
  await postern.admin('PATCH', `/policies/${id}`, { timeout_ms: 20_000 });
  expect(await askedBy(one.key, call())).toBe(1);
  await postern.admin('PATCH', `/policies/${id}`, { send: 'body' });
  expect(await askedBy(one.key, call())).toBe(1);
  expect(await askedBy(one.key, call())).toBe(0);
  expect(await askedBy(one.key, { body: '{"model":"m","messages":["other"]}' })).toBe(1);
  // A filter may read the same bytes differently if they are called something else.
  for (const headers of [
    ['Content-Type: text/plain'],
    ['Content-Type: text/plain', 'Content-Encoding: gzip'],
  ])
    for (const asked of [1, 0]) expect(await askedBy(one.key, call({ headers }))).toBe(asked);
});

it('caches rejections and tags, and no failures', async () => {
  await createPolicy(postern, filter, { cache_seconds: 86_400 });
  const { key } = await keyOf();
  filter.respond = deny;
  for (let i = 0; i < 2; i++)
    expect((await send(key, { body: '{"model":"a"}' })).header('x-gateway-policy')).toBe('dlp pii_found');
  filter.respond = decide({ allow: true, tags: { class: 'public' } });
  for (let i = 0; i < 2; i++) {
    const reply = await send(key, { body: '{"model":"b"}' });
    expect((await postern.row(reply.header('x-gateway-request-id')!)).tags).toEqual({ class: 'public' });
  }
  expect(filter.asked).toHaveLength(2);
  filter.respond = decide('no');
  for (let i = 0; i < 2; i++) expect((await send(key, { body: '{"model":"c"}' })).status).toBe(503);
  expect(filter.asked).toHaveLength(4);
});

describe('WebSockets', () => {
  const socketOf = async () => {
    const { key } = await keyOf({ websockets: true, providers: ['sockets'] });
    return WsClient.connect(postern.url, '/p/sockets/v1/realtime?model=gpt-realtime', {
      authorization: `Bearer ${key}`,
    });
  };

  it('are asked about once with head, when they are opened', async () => {
    await createPolicy(postern, filter);
    const client = await socketOf();
    await client.opened;
    expect(filter.asked.map(({ call }) => call)).toMatchObject([
      { method: 'GET', endpoint: '/v1/realtime', model: 'gpt-realtime', body_bytes: 0 },
    ]);
    filter.respond = deny;
    const { status, headers } = await refused(await keyOf({ websockets: true, providers: ['sockets'] }));
    expect([status, headers['x-gateway-error']]).toEqual([403, 'policy_rejected']);
  });

  it('are rejected with 426 by a policy that gets bodies', async () => {
    await createPolicy(postern, filter, { send: 'body' });
    const { status, headers } = await refused(await keyOf({ websockets: true, providers: ['sockets'] }));
    expect([status, headers['x-gateway-error']]).toEqual([426, 'upgrade_required']);
    expect(filter.asked).toHaveLength(0);
  });

  it('are closed when a policy is added or gets bodies', async () => {
    const before = await socketOf();
    await before.opened;
    const { id } = await createPolicy(postern, filter);
    expect((await before.closed).code).toBe(1008);
    const client = await socketOf();
    await client.opened;
    // What admits the same WebSockets closes none.
    await postern.admin('PATCH', `/policies/${id}`, { timeout_ms: 20_000 });
    await postern.admin('PATCH', `/policies/${id}`, { send: 'body' });
    expect((await client.closed).code).toBe(1008);
  });

  async function refused({ key }: { key: string }) {
    const client = await RawClient.connect(postern.port);
    const upgrade = [
      `Authorization: Bearer ${key}`,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ];
    client.send(request('GET /p/sockets/v1/realtime?model=gpt-realtime', upgrade));
    const reply = await client.answer();
    client.destroy();
    return { status: reply.status, headers: { 'x-gateway-error': reply.header('x-gateway-error') } };
  }
});

it('is in force on other replicas too', async () => {
  const replica = await startTestGateway({ PROVIDER_URL: provider.url, MASTER_KEY }, postern.database);
  const { key } = await keyOf();
  filter.respond = deny;
  const { id } = await createPolicy(postern, filter);
  const statusThere = async () => (await send(key, { to: replica })).status;
  await eventually(async () => (await statusThere()) === 403);
  await postern.admin('PATCH', `/policies/${id}`, { enabled: false });
  await eventually(async () => (await statusThere()) === 200);
  await replica.stop();
});

it('is in force also once the database was restored, which has counted fewer changes', async () => {
  const { key } = await keyOf();
  await createPolicy(postern, filter, { name: 'before' });
  await removePolicies(postern);
  await postern.database.query(`UPDATE change_counter SET value = 0 WHERE name = 'policies'`);
  filter.respond = deny;
  await createPolicy(postern, filter);
  expect((await send(key)).status).toBe(403);
});

it('is the one of a restored database, also if that has its ID and its version, and decides again', async () => {
  const { key } = await keyOf();
  const { id } = await createPolicy(postern, filter, { cache_seconds: 60 });
  expect((await send(key)).status).toBe(200);
  await postern.database.query(`UPDATE policy SET models = '{"other"}' WHERE id = $1`, [id]);
  await postern.gateway.app.get(PolicyDirectory).refresh();
  expect((await send(key)).status).toBe(200);
  expect(filter.asked).toHaveLength(1);
  // The decision of before counts no more.
  await postern.database.query(`UPDATE policy SET models = NULL, timeout_ms = timeout_ms + 1 WHERE id = $1`, [
    id,
  ]);
  await postern.gateway.app.get(PolicyDirectory).refresh();
  filter.respond = deny;
  expect((await send(key)).status).toBe(403);
});

it('rejects calls where its secret cannot be decrypted, also if failures are allowed', async () => {
  const other = randomBytes(32).toString('base64');
  const { id } = await createPolicy(postern, filter, { on_failure: 'allow' });
  const { key } = await keyOf();
  const variables = { PROVIDER_URL: provider.url, MASTER_KEY: other };
  const replica = await startTestGateway(variables, postern.database);
  const reply = await send(key, { to: replica });
  expect([reply.status, reply.header('x-gateway-error')]).toEqual([503, 'policy_unavailable']);
  expect(await replica.admin('GET', `/policies/${id}`)).toMatchObject({ secret_state: 'unreadable' });
  expect(await replica.admin('GET', '/attention')).toMatchObject({
    data: expect.arrayContaining([
      expect.objectContaining({
        kind: 'secret_unreadable',
        names: expect.arrayContaining([expect.objectContaining({ id, name: 'dlp' })]) as object[],
      }),
    ]) as object[],
  });
  await expect(replica.admin('POST', `/policies/${id}/test`, {})).rejects.toThrow(/409.*MASTER_KEY/s);
  await expect(replica.admin('PATCH', `/policies/${id}`, { url: filter.url })).rejects.toThrow(/409/);
  const both = { url: filter.url, secret: newSecret() };
  expect(await replica.admin('PATCH', `/policies/${id}`, both)).toMatchObject({ secret_state: 'sealed' });
  expect((await send(key, { to: replica })).status).toBe(200);
  await replica.stop();
});

it('costs nothing on the request path without a policy for the key', async () => {
  const policy = postern.gateway.app.get(UrlPolicy, { strict: false });
  const { key } = await keyOf();
  // What the tests before have changed is known, and the policies of the key were found once.
  await changesApplied(postern);
  await send(key);
  const calls: string[] = [];
  const spies = [
    jest.spyOn(policy, 'needsBody').mockImplementation(() => (calls.push('needsBody'), false)),
    jest.spyOn(policy, 'admit').mockImplementation((_: PolicyCall) => void calls.push('admit')),
    jest.spyOn(policy, 'appliesTo').mockImplementation(() => (calls.push('appliesTo'), false)),
  ];
  try {
    for (let i = 0; i < 3; i++) expect((await send(key)).status).toBe(200);
    expect(calls).toEqual([]);
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
  await createPolicy(postern, filter, { applies_to: { teams: ['other'] } });
  await send(key);
  expect(filter.asked).toEqual([]);
});
