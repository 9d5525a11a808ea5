import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { answer, chunk, LAST_CHUNK, STREAM_HEAD } from '../support/raw-provider.js';
import { RawClient, request } from '../support/raw-client.js';
import { JSON_TYPE, limitedForFile, limitOf } from './limited-gateway.js';

const limited = limitedForFile();

const CHAT = { model: 'm', max_tokens: 1_000, messages: [] };

const createKey = (members: object) => limited.issue(members);

async function refusals(code: string): Promise<number> {
  const response = await fetch(`${limited.postern.url}/metrics`, {
    headers: { authorization: 'Bearer test-admin-token-0123456789' },
  });
  const line = new RegExp(`^postern_refusals_total\\{code="${code}"\\} (\\d+)$`, 'm');
  return Number(line.exec(await response.text())![1]);
}

it('rejects calls with 402 once the budget is spent, and the row of each call has its charge', async () => {
  // Each costs 100 input and 1,000 output tokens: 0.0101 USD, and reserves a little more.
  Object.assign(limited.use, { input: 100, output: 1_000 });
  const { id, key } = await createKey({ budgets: [{ usd: '0.05', period: 'month' }] });
  const before = await refusals('insufficient_quota');
  const forwarded = limited.provider.requests.length;
  const statuses = [];
  let last;
  do statuses.push((last = await limited.send(key, CHAT)).status);
  while (last.status === 200);
  expect(statuses).toEqual([200, 200, 200, 200, 402]);
  expect(limited.provider.requests.length - forwarded).toBe(4);
  expect(last.headers.get('x-should-retry')).toBe('false');
  expect(last.headers.get('retry-after')).toBeNull();
  expect(last.error).toMatchObject({ type: 'insufficient_quota', code: 'insufficient_quota' });
  expect(last.error.message).toMatch(
    /^The monthly budget of this gateway key does not cover this request: \$0\.0\d+ of \$0\.05 was spent, and the request may use \$0\.01\d+\. It resets at 20\d\d-\d\d-01T00:00:00\.000Z\.$/,
  );
  expect(await refusals('insufficient_quota')).toBe(before + 1);
  const rows = await eventually(async () => {
    const found = await limited.postern.database.query<{ charge_usd: string; cost_usd: string }>(
      'SELECT charge_usd, cost_usd FROM request_log WHERE key_id = $1',
      [id],
    );
    return found.length === 4 && found;
  });
  expect(rows).toEqual(Array(4).fill({ charge_usd: '0.010100000', cost_usd: '0.010100000' }));
  await eventually(async () => {
    const figures = await limitOf(limited.postern, `key=${id}`);
    return figures.used === '0.0404' && figures.refused === 1;
  });
});

it('has the error in the shape of the Anthropic API on its endpoints', async () => {
  const { key } = await createKey({ budgets: [{ usd: '0', period: 'total' }] });
  const reply = await limited.send(key, CHAT, '/v1/messages');
  expect([reply.status, reply.code, reply.error.type]).toEqual([402, 'insufficient_quota', 'billing_error']);
  expect(reply.error.message).toBe(
    'The total budget of this gateway key is spent: $0.00 of $0.00. It does not reset by itself.',
  );
});

it('rejects calls with 429 above the rate, saying when to come again', async () => {
  const { id, key } = await createKey({ limits: { requests_per_minute: 3 } });
  for (let i = 0; i < 3; i++) expect((await limited.send(key, CHAT)).status).toBe(200);
  const openai = await limited.send(key, CHAT);
  expect([openai.status, openai.code]).toEqual([429, 'rate_limit_exceeded']);
  expect(openai.error).toMatchObject({ type: 'requests', code: 'rate_limit_exceeded' });
  const retryAfter = Number(openai.headers.get('retry-after'));
  expect(retryAfter).toBeGreaterThan(30);
  expect(retryAfter).toBeLessThanOrEqual(65);
  const retryMs = Number(/^([\d.]+)s$/.exec(openai.headers.get('x-ratelimit-reset-requests')!)![1]) * 1_000;
  expect(Math.ceil(retryMs / 1_000)).toBe(retryAfter);
  // The SDKs read this one, and many versions ignore a minute and more.
  expect(Number(openai.headers.get('retry-after-ms'))).toBe(Math.min(Math.round(retryMs), 59_999));
  expect(openai.headers.get('x-should-retry')).toBeNull();
  expect(openai.headers.get('x-ratelimit-limit-requests')).toBe('3');
  expect(openai.headers.get('x-ratelimit-remaining-requests')).toBe('0');
  expect(openai.headers.get('ratelimit-policy')).toBe('"requests";q=3;w=60');
  expect(openai.headers.get('ratelimit')).toBe(`"requests";r=0;t=${retryAfter}`);
  expect(openai.error.message).toBe(
    `The limit of 3 requests per minute of this gateway key is reached. Try again in ${retryAfter} s.`,
  );

  const anthropic = await limited.send(key, CHAT, '/v1/messages');
  expect([anthropic.status, anthropic.error.type]).toEqual([429, 'rate_limit_error']);
  expect(anthropic.headers.get('anthropic-ratelimit-requests-limit')).toBe('3');
  expect(anthropic.headers.get('anthropic-ratelimit-requests-remaining')).toBe('0');
  const reset = Date.parse(anthropic.headers.get('anthropic-ratelimit-requests-reset')!) - Date.now();
  expect(reset).toBeGreaterThan(20_000);
  expect(reset).toBeLessThanOrEqual(65_000);
  expect([...anthropic.headers.keys()].filter((name) => name.startsWith('x-ratelimit'))).toEqual([]);
  await eventually(async () => (await limitOf(limited.postern, `key=${id}`)).refused === 2);
});

it('rejects calls above the tokens of a minute, by what calls reserve and then have used', async () => {
  const { key } = await createKey({ limits: { tokens_per_minute: 3_000 } });
  expect((await limited.send(key, CHAT)).status).toBe(200);
  // It used 200 of the 1,000 and more that it reserved.
  expect((await limited.send(key, { ...CHAT, max_tokens: 2_000 })).status).toBe(200);
  const reply = await limited.send(key, { ...CHAT, max_tokens: 2_900 });
  expect([reply.status, reply.error.type]).toEqual([429, 'tokens']);
  expect(Number(reply.headers.get('x-ratelimit-remaining-tokens'))).toBeGreaterThan(2_000);
});

it('has at most so many calls at once, and gives the place of one that ended or was broken off to the next', async () => {
  const { key } = await createKey({ limits: { concurrent_requests: 2 } });
  let release = () => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  limited.provider.script = async ({ body, socket }) => {
    await body;
    await released;
    socket.write(answer('200 OK', JSON_TYPE, '{}'));
  };
  const before = limited.provider.requests.length;
  const first = limited.send(key, CHAT);
  const client = await RawClient.connect(limited.postern.port);
  client.send(request('POST /v1/chat/completions', [`Authorization: Bearer ${key}`], '{"model":"m"}'));
  await eventually(() => limited.provider.requests.length === before + 2);
  const third = await limited.send(key, CHAT);
  expect(third.status).toBe(429);
  expect(third.error.type).toBe('concurrent_requests');
  expect(third.headers.get('retry-after')).toBe('1');
  expect(third.headers.get('ratelimit-policy')).toBe('"concurrent_requests";q=2;qu="concurrent-requests"');
  client.destroy();
  release();
  expect((await first).status).toBe(200);
  await eventually(async () => (await limited.send(key, CHAT)).status === 200);
});

it('lets a call pass only if the key, its team and its end user all admit it', async () => {
  const { id: team } = await limited.postern.admin<{ id: string }>('POST', '/teams', {
    name: 'shared',
    limits: { requests_per_minute: 6 },
    each_end_user: { requests_per_minute: 2 },
  });
  const key = (await createKey({ team: 'shared', limits: { requests_per_minute: 5 } })).key;
  const other = (await createKey({ team: 'shared' })).key;
  const as = async (by: string, user: string) =>
    limited.send(by, CHAT, undefined, { 'x-gateway-user': user });
  expect((await as(key, 'ann')).status).toBe(200);
  expect((await as(other, 'ann')).status).toBe(200);
  const ann = await as(key, 'ann');
  expect(ann.status).toBe(429);
  expect(ann.error.message).toContain('this end user of the team');
  // The end user in the body.
  for (let i = 0; i < 2; i++) expect((await limited.send(other, { ...CHAT, user: 'ben' })).status).toBe(200);
  expect((await limited.send(other, { ...CHAT, user: 'ben' })).status).toBe(429);
  expect((await as(key, 'cat')).status).toBe(200);
  expect((await as(key, 'dan')).status).toBe(200);
  const sixth = await as(key, 'eve');
  expect(sixth.error.message).toContain('of the team of this gateway key');
  // Without limits again.
  await limited.postern.admin('PATCH', `/teams/${team}`, { limits: null, each_end_user: null });
  await eventually(async () => (await as(other, 'ann')).status === 200);
});

it('counts the sessions of Claude Code on one device as one end user', async () => {
  const { key } = await createKey({ each_end_user: { requests_per_minute: 2 } });
  const call = async (userId: string) =>
    (await limited.send(key, { ...CHAT, metadata: { user_id: userId } })).status;
  const session = (device: string, id: string) =>
    call(JSON.stringify({ device_id: device.repeat(64), account_uuid: '', session_id: id }));
  expect(await session('a', '1')).toBe(200);
  expect(await session('a', '2')).toBe(200);
  expect(await session('a', '3')).toBe(429);
  // An older version on the same device.
  expect(await call(`user_${'a'.repeat(64)}_account__session_4`)).toBe(429);
  expect(await session('b', '5')).toBe(200);
});

never(
  'charges what a call reserved if its usage is unknown, and nothing if the provider rejected it',
  async () => {
    const { id, key } = await createKey({ budgets: [{ usd: '1', period: 'day' }] });
    limited.provider.script = async ({ body, socket }) => {
      await body;
      socket.write(STREAM_HEAD);
      socket.write(chunk('data: {"choices":[]}\n\n'));
      socket.write(LAST_CHUNK);
    };
    const unknown = await limited.send(key, { ...CHAT, stream: true });
    limited.provider.script = async ({ body, socket }) => {
      await body;
      socket.write(answer('429 Too Many Requests', JSON_TYPE, '{"error":{}}'));
    };
    const rejected = await limited.send(key, CHAT);
    expect([unknown.status, rejected.status, rejected.code]).toEqual([200, 429, null]);
    const first = await limited.postern.row(unknown.id);
    expect(first.cost_usd).toBeNull();
    // 1,000 output tokens, and about a third of the bytes of the body.
    expect(Number(first.charge_usd)).toBeGreaterThan(0.01);
    expect(Number(first.charge_usd)).toBeLessThan(0.0101);
    const second = await limited.postern.row(rejected.id);
    expect([second.cost_usd, second.charge_usd]).toEqual([null, '0.000000000']);
    await eventually(
      async () => `${(await limitOf(limited.postern, `key=${id}`)).used}` === `${Number(first.charge_usd)}`,
    );
  },
);

it('reserves the most that a call can use for a budget that must never be exceeded', async () => {
  const body = { model: 'm', messages: [{ role: 'user', content: 'x'.repeat(3_000) }] };
  const typical = await createKey({ budgets: [{ usd: '0.05', period: 'day' }] });
  expect((await limited.send(typical.key, body)).status).toBe(200);
  const worst = await createKey({ budgets: [{ usd: '0.05', period: 'day', reservation: 'worst' }] });
  const reply = await limited.send(worst.key, body);
  expect(reply.status).toBe(402);
  // 131,072 tokens of output, and a token for each byte of the body.
  expect(reply.error.message).toMatch(/the request may use \$1\.313\d+\./);
  expect((await limited.send(worst.key, { ...body, max_tokens: 100 })).status).toBe(200);
  expect((await limited.send(worst.key, { ...body, max_tokens: 1_000, n: 5 })).status).toBe(402);
});

never('rejects models without a price, unless the budget allows them', async () => {
  const strict = await createKey({ budgets: [{ usd: '1', period: 'day' }], endpoints: 'all' });
  const reply = await limited.send(strict.key, { ...CHAT, model: 'other' });
  expect([reply.status, reply.code, reply.error.type]).toEqual([403, 'model_not_priced', 'permission_error']);
  expect(reply.headers.get('x-should-retry')).toBe('false');
  const file = await limited.send(strict.key, {}, '/v1/batches');
  expect([file.status, file.code]).toEqual([403, 'model_not_priced']);
  const open = await createKey({
    budgets: [{ usd: '1', period: 'day', unpriced: 'allow' }],
    endpoints: 'all',
  });
  expect((await limited.send(open.key, { ...CHAT, model: 'other' })).status).toBe(200);
  expect((await limited.send(open.key, {}, '/v1/batches')).status).toBe(200);
  const tokens = await createKey({ budgets: [{ tokens: 9_000, period: 'day' }], endpoints: 'all' });
  expect((await limited.send(tokens.key, { ...CHAT, model: 'other' })).status).toBe(200);
  expect((await limited.send(tokens.key, {}, '/v1/batches')).status).toBe(200);
});

never('counts nothing for what costs nothing', async () => {
  const { key } = await createKey({ budgets: [{ usd: '0', period: 'day' }] });
  const list = await fetch(`${limited.postern.url}/v1/models`, {
    headers: { authorization: `Bearer ${key}` },
  });
  expect(list.status).toBe(200);
  await list.arrayBuffer();
  for (const path of [
    '/v1/messages/count_tokens',
    '/p/default/openai/responses/input_tokens',
    '/p/default/v1/publishers/google/models/m:countTokens',
  ]) {
    const counted = await limited.send(key, CHAT, path);
    expect(counted.status).toBe(200);
    expect(await limited.postern.row(counted.id)).toMatchObject({ charge_usd: '0.000000000' });
  }
});

it('only counts for a budget that warns, whatever the model', async () => {
  const { id, key } = await createKey({ budgets: [{ usd: '0.001', period: 'day', mode: 'warn' }] });
  for (let i = 0; i < 3; i++) expect((await limited.send(key, CHAT)).status).toBe(200);
  expect((await limited.send(key, { ...CHAT, model: 'other' })).status).toBe(200);
  // The response names the model.
  expect((await limited.send(key, {})).status).toBe(200);
  await eventually(async () => (await limitOf(limited.postern, `key=${id}`)).used === '0.0044');
});

it('counts a replayed response as a request, and charges nothing for it', async () => {
  const { id, key } = await createKey({
    idempotency: 'replay',
    limits: { requests_per_minute: 3 },
    budgets: [{ usd: '1', period: 'day' }],
  });
  const send = () => limited.send(key, CHAT, undefined, { 'idempotency-key': 'one' });
  const replies = [await send(), await send(), await send(), await send()];
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 429]);
  expect(replies[2]!.headers.get('idempotent-replayed')).toBe('true');
  expect(await limited.postern.row(replies[2]!.id)).toMatchObject({
    outcome: 'replayed',
    charge_usd: '0.000000000',
  });
  expect(await limited.postern.row(replies[0]!.id)).toMatchObject({ charge_usd: '0.001100000' });
  const { data } = await limited.postern.admin<{ data: { resource: string; used: string }[] }>(
    'GET',
    `/limits?key=${id}`,
  );
  expect(data.find(({ resource }) => resource === 'usd')!.used).toBe('0.0011');
});

it('replays a stored response although the budget is spent, and runs nothing', async () => {
  const { key } = await createKey({
    idempotency: 'replay',
    budgets: [{ usd: '0.0012', period: 'day', reservation: 'worst' }],
  });
  const send = (name: string, body: object = CHAT) =>
    limited.send(key, { ...body, max_tokens: 100 }, undefined, { 'idempotency-key': name });
  const first = await send('one');
  expect(first.status).toBe(200);
  expect((await send('two')).status).toBe(402);
  const again = await send('one');
  expect(again).toMatchObject({ status: 200, id: expect.not.stringContaining(first.id) as string });
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  expect(await limited.postern.row(again.id)).toMatchObject({ outcome: 'replayed', charge_usd: null });
  // Another body under the same name is still a mistake of the client.
  expect((await send('one', { ...CHAT, n: 1 })).status).toBe(422);
  expect((await send('two')).status).toBe(402);
});

it('calls no policy for a key without limits, and does not gather its body', async () => {
  const { key } = await createKey({});
  const client = await RawClient.connect(limited.postern.port);
  client.send(
    request('POST /v1/chat/completions', [
      `Authorization: Bearer ${key}`,
      ...JSON_TYPE,
      'Transfer-Encoding: chunked',
    ]),
  );
  const before = limited.provider.requests.length;
  client.send('5\r\n{"mod\r\n');
  await eventually(() => limited.provider.requests.length > before);
  client.send('8\r\nel":"m"}\r\n0\r\n\r\n');
  expect((await client.answer()).status).toBe(200);
  client.destroy();
});
