import { randomBytes } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { randomSecret } from '../../src/platform/random-secret.js';
import { GatheringMemory } from '../../src/proxy/stages/gathering.js';
import { Scrape } from '../observability/scrape.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { RawClient, request } from '../support/raw-client.js';
import { answer, chunk, LAST_CHUNK, RawProvider, STREAM_HEAD } from '../support/raw-provider.js';
import {
  allow,
  type Asked,
  createPolicy,
  decide,
  deny,
  Filter,
  isSigned,
  newSecret,
  removePolicies,
} from './filter.js';

const CHAT = '/v1/chat/completions';
const REPLY = '{"model":"m-1","usage":{"prompt_tokens":8,"completion_tokens":2}}';

let provider: RawProvider;
let filter: Filter;
let postern: TestGateway;
beforeAll(async () => {
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', ['Content-Type: application/json'], REPLY));
  });
  filter = await new Filter().listen();
  postern = await startTestGateway({ PROVIDER_URL: provider.url });
});
afterAll(async () => {
  await postern.stop();
  await filter.close();
  await provider.stop();
});
beforeEach(async () => {
  await removePolicies(postern);
  filter.asked.length = 0;
  filter.respond = allow;
  provider.requests.length = 0;
});

interface Sent {
  path?: string;
  headers?: string[];
  key?: string;
}

async function send(body: string | Buffer, { path = CHAT, headers = [], key = postern.key }: Sent = {}) {
  const client = await RawClient.connect(postern.port);
  const head = [`Authorization: Bearer ${key}`, 'Content-Type: application/json', ...headers];
  client.send(request(`POST ${path}`, head, body));
  const reply = await client.answer();
  client.destroy();
  return reply;
}

it('asks about a call before it is forwarded, with its facts and a signature', async () => {
  const secret = newSecret();
  await createPolicy(postern, filter, { secret });
  filter.respond = (res, asked) => {
    expect(provider.requests).toHaveLength(0);
    allow(res, asked);
  };
  const body = '{"model":"gpt-5-mini","user":"u-17","messages":[{"role":"user","content":"é"}]}';
  const reply = await send(body, { path: `${CHAT}?a=1`, headers: ['x-gateway-tags: env=dev'] });
  expect(reply.status).toBe(200);
  expect(provider.requests).toHaveLength(1);
  const [asked] = filter.asked as [Asked];
  const row = await postern.row(reply.header('x-gateway-request-id')!);
  expect(asked.call).toEqual({
    request_id: reply.header('x-gateway-request-id'),
    team_id: row.team_id,
    key_id: row.key_id,
    end_user: 'u-17',
    model: 'gpt-5-mini',
    method: 'POST',
    endpoint: CHAT,
    body_bytes: Buffer.byteLength(body),
    tags: { env: 'dev' },
  });
  expect(asked.path).toBe('/decide?token=canary-filter-token');
  expect(asked.body).toHaveLength(0);
  expect(asked.headers).toMatchObject({ 'content-length': '0', 'user-agent': 'Postern' });
  expect(asked.headers['content-type']).toBeUndefined();
  expect(isSigned(asked, secret)).toBe(true);
  expect(isSigned(asked, newSecret())).toBe(false);
});

it.each([
  ['text', Buffer.from('{"model":"m","input":"Grüße  \\u0041"}'), []],
  ['compressed bytes', randomBytes(5_000), ['Content-Encoding: br']],
  ['a megabyte', Buffer.alloc(1_000_000, '{"model": "m"}'), []],
])(
  'with send: body, sends the body as it came, and forwards the same bytes: %s',
  async (_, body, headers) => {
    const secret = newSecret();
    await createPolicy(postern, filter, { send: 'body', secret });
    const reply = await send(body, { headers });
    expect(reply.status).toBe(200);
    const [asked] = filter.asked as [Asked];
    expect(asked.body.equals(body)).toBe(true);
    expect(asked.headers['content-type']).toBe('application/json');
    expect(asked.headers['content-encoding']).toBe(headers[0]?.split(': ')[1]);
    expect(isSigned(asked, secret)).toBe(true);
    expect((await provider.requests[0]!.body).bytes.equals(body)).toBe(true);
  },
);

it('has a signature that libraries for Standard Webhooks verify', async () => {
  const secret = newSecret();
  await createPolicy(postern, filter, { send: 'body', secret });
  await send('{"model":"m"}');
  const { headers, body } = filter.asked[0]!;
  const at = new Date(Number(headers['webhook-timestamp']) * 1_000);
  const signed = `${String(headers['x-postern-call'])}.${body.toString()}`;
  expect(new Webhook(secret).sign(String(headers['webhook-id']), at, signed)).toBe(
    headers['webhook-signature'],
  );
});

it('forwards the same bytes of the head and of the body as without a policy', async () => {
  const headers = ['x-CASE: 1', 'X-case: 2', 'Accept: */*'];
  const body = '{"model":"m" ,\n "x":[1]}';
  const sent = async () => {
    provider.requests.length = 0;
    expect((await send(body, { headers })).status).toBe(200);
    const { head, body: received } = provider.requests[0]!;
    return { head, framed: (await received).framed };
  };
  const without = await sent();
  await createPolicy(postern, filter, { send: 'body' });
  expect(await sent()).toEqual(without);
  expect(filter.asked).toHaveLength(1);
});

it('rejects a call with the code and message of the policy, without a row, and counts it', async () => {
  await createPolicy(postern, filter);
  filter.respond = deny;
  const rejected = async () =>
    (await Scrape.of(postern.url)).sum('postern_refusals_total', { code: 'policy_rejected' });
  const before = await rejected();
  const reply = await send('{"model":"m"}');
  expect(reply.status).toBe(403);
  expect(JSON.parse(reply.body.toString())).toEqual({
    error: {
      message: 'No card numbers, please.',
      type: 'permission_error',
      param: null,
      code: 'pii_found',
    },
  });
  expect(reply.header('x-gateway-error')).toBe('policy_rejected');
  expect(reply.header('x-gateway-policy')).toBe('dlp pii_found');
  expect(reply.header('x-should-retry')).toBe('false');
  const ofAnthropic = await send('{"model":"m"}', { path: '/v1/messages' });
  expect(ofAnthropic.header('x-gateway-policy')).toBe('dlp pii_found');
  expect(JSON.parse(ofAnthropic.body.toString())).toEqual({
    type: 'error',
    error: { type: 'permission_error', message: 'No card numbers, please.' },
  });
  expect(provider.requests).toHaveLength(0);
  expect(await rejected()).toBe(before + 2);
  filter.respond = allow;
  const allowed = await send('{"model":"m"}');
  await postern.row(allowed.header('x-gateway-request-id')!);
  const ids = [reply, ofAnthropic].map((one) => one.header('x-gateway-request-id'));
  expect(await postern.database.query('SELECT FROM request_log WHERE id = ANY ($1)', [ids])).toEqual([]);
  const scrape = await Scrape.of(postern.url);
  const of = (decision: string) =>
    scrape.sum('postern_policy_decisions_total', { policy: 'dlp', decision, from: 'receiver' });
  expect(of('rejected')).toBeGreaterThanOrEqual(2);
  expect(of('allowed')).toBeGreaterThanOrEqual(1);
  // Written every 5 seconds.
  await eventually(async () => {
    const { data } = await postern.admin<{ data: { code: string; model: string }[] }>('GET', '/refusals');
    return data.some(({ code }) => code === 'policy_rejected');
  });
});

it('adds the tags of a policy to the row, before those of the client', async () => {
  await createPolicy(postern, filter);
  filter.respond = decide({ allow: true, tags: { class: 'public', env: 'checked' } });
  const tags = Array.from({ length: 7 }, (_, i) => `t${i}=${i}`).join(',');
  const reply = await send('{"model":"m"}', { headers: [`x-gateway-tags: env=dev,${tags}`] });
  const row = await postern.row(reply.header('x-gateway-request-id')!);
  const expected = { class: 'public', env: 'checked', t0: '0', t1: '1', t2: '2', t3: '3', t4: '4', t5: '5' };
  expect(row.tags).toEqual(expected);
});

it('asks policies in their order, the later with the tags of the earlier, until one rejects', async () => {
  const second = await new Filter().listen();
  const third = await new Filter().listen();
  await createPolicy(postern, third, { name: 'c', order: 3 });
  await createPolicy(postern, second, { name: 'b', order: 2 });
  await createPolicy(postern, filter, { name: 'a', order: -1 });
  filter.respond = decide({ allow: true, tags: { class: 'public' } });
  second.respond = deny;
  const reply = await send('{"model":"m"}');
  expect(reply.header('x-gateway-policy')).toBe('b pii_found');
  expect(second.asked.map(({ call }) => call.tags)).toEqual([{ class: 'public' }]);
  expect([filter.asked.length, third.asked.length]).toEqual([1, 0]);
});

it.each([
  ['changed', (id: string) => postern.admin('PATCH', `/policies/${id}`, { timeout_ms: 20_000 })],
  ['removed', () => removePolicies(postern)],
])('asks a policy that is %s while the call waits for an earlier one', async (_, change) => {
  const second = await new Filter().listen();
  await createPolicy(postern, filter, { name: 'a', order: 1 });
  const { id } = await createPolicy(postern, second, { name: 'b', order: 2, on_failure: 'allow' });
  second.respond = deny;
  let decideFirst = () => {};
  filter.respond = (res, asked) => void (decideFirst = () => allow(res, asked));
  const reply = send('{"model":"m"}');
  await eventually(() => filter.asked.length === 1);
  await change(id);
  decideFirst();
  expect((await reply).header('x-gateway-policy')).toBe('b pii_found');
  expect(provider.requests).toHaveLength(0);
});

it('decides about no empty body in place of one that was not gathered when it began to get bodies', async () => {
  const { id } = await createPolicy(postern, filter, { on_failure: 'allow' });
  await postern.admin('POST', '/providers', { name: 'second', url: provider.url, secret: null });
  const targets = [{ provider: 'default' }, { provider: 'second' }];
  await postern.admin('POST', '/routes', { name: 'both', targets });
  const memory = postern.gateway.app.get(GatheringMemory, { strict: false });
  const reserving = jest.spyOn(memory, 'reserve');
  const client = await RawClient.connect(postern.port);
  const headers = [`Authorization: Bearer ${postern.key}`, 'Transfer-Encoding: chunked'];
  // The model is in the path, and the body too large for a second attempt.
  client.send(request('POST /p/both/v1beta/models/m:generateContent', headers));
  const part = chunk('x'.repeat(1_048_576));
  client.send(part);
  await eventually(() => reserving.mock.calls.length > 0);
  reserving.mockRestore();
  await postern.admin('PATCH', `/policies/${id}`, { send: 'body' });
  for (let i = 0; i < 33; i++) client.send(part);
  client.send(LAST_CHUNK);
  expect((await client.answer()).header('x-gateway-error')).toBe('policy_unavailable');
  client.destroy();
  expect([filter.asked.length, provider.requests.length]).toEqual([0, 0]);
});

it('holds no byte of a stream back once it has decided', async () => {
  await createPolicy(postern, filter, { send: 'body' });
  const events: string[] = [];
  filter.respond = (res, asked) => {
    events.push('asked');
    allow(res, asked);
  };
  const { script } = provider;
  let goOn = () => {};
  provider.script = async ({ body, socket }) => {
    await body;
    events.push('forwarded');
    socket.write(STREAM_HEAD + chunk('data: 1\n\n').toString());
    // Only when the client has the first event.
    goOn = () => socket.write(chunk('data: 2\n\n').toString() + LAST_CHUNK);
  };
  try {
    const response = await fetch(postern.url + CHAT, {
      method: 'POST',
      headers: { authorization: `Bearer ${postern.key}` },
      body: '{"model":"m","stream":true}',
    });
    const reader = response.body!.getReader();
    const next = async () => Buffer.from((await reader.read()).value ?? []).toString();
    expect(await next()).toBe('data: 1\n\n');
    events.push('first event');
    goOn();
    expect(await next()).toBe('data: 2\n\n');
    expect(events).toEqual(['asked', 'forwarded', 'first event']);
  } finally {
    provider.script = script;
  }
});

it.each([
  ['gateway key', () => postern.key],
  ['refresh token', () => randomSecret('ptr_')],
  ['device code', () => randomSecret('ptd_')],
])('tells a policy no %s, wherever a client puts it', async (_, make) => {
  await createPolicy(postern, filter);
  const secret = make();
  const headers = [`x-gateway-tags: k=${secret}`];
  await send(JSON.stringify({ model: secret, user: `u ${secret}` }), { headers });
  const [asked] = filter.asked as [Asked];
  const shown = `${secret.slice(0, 4)}…`;
  expect(asked.call).toMatchObject({ model: shown, end_user: `u ${shown}`, tags: { k: shown } });
  expect(JSON.stringify(asked.headers)).not.toContain(secret);
});

it('rejects a call whose facts are too long for a header, also where failures are allowed', async () => {
  await createPolicy(postern, filter, { on_failure: 'allow' });
  const reply = await send(JSON.stringify({ model: 'm', user: 'ü'.repeat(6_000) }));
  expect([reply.status, reply.header('x-gateway-error')]).toEqual([400, 'policy_call_too_long']);
  expect([filter.asked.length, provider.requests.length]).toEqual([0, 0]);
});

it('leaves the limits of a key as they are when it rejects', async () => {
  const key = await postern.createKey({ limits: { requests_per_minute: 1 } });
  await createPolicy(postern, filter);
  filter.respond = deny;
  for (let i = 0; i < 3; i++) expect((await send('{"model":"m"}', { key })).status).toBe(403);
  filter.respond = allow;
  expect((await send('{"model":"m"}', { key })).status).toBe(200);
  await eventually(async () => (await send('{"model":"m"}', { key })).status === 429);
});

it('does not forward a call whose client leaves while a policy decides', async () => {
  await createPolicy(postern, filter);
  let closed = 0;
  filter.respond = (res) => void res.on('close', () => closed++);
  const client = await RawClient.connect(postern.port);
  client.send(request(`POST ${CHAT}`, [`Authorization: Bearer ${postern.key}`], '{"model":"m"}'));
  await eventually(() => filter.asked.length === 1);
  client.reset();
  // The request to the filter is cancelled, and frees its slot.
  await eventually(() => closed === 1);
  await eventually(
    async () => (await Scrape.of(postern.url)).sum('postern_policy_calls', { policy: 'dlp' }) === 0,
  );
  expect(provider.requests).toHaveLength(0);
  expect((await Scrape.of(postern.url)).sum('postern_policy_failures_total', { policy: 'dlp' })).toBe(0);
});
