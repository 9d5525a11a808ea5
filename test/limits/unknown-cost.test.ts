import { gzipSync } from 'node:zlib';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { answer, chunk, STREAM_HEAD } from '../support/raw-provider.js';
import { JSON_TYPE, limitedForFile, limitOf } from './limited-gateway.js';

const limited = limitedForFile();

const CHAT = { model: 'm', max_tokens: 1, messages: [] };
const BUDGETS = [
  { usd: '50', period: 'month' },
  { tokens: 10_000_000, period: 'day' },
];

beforeAll(async () => {
  const tiers = [{ service_tier: 'priority', input: '2', output: '20' }];
  const price = { catalog: 'default', model: 'tiered', input: '1', output: '10', tiers };
  await limited.postern.admin('POST', '/prices', price);
});

/** Makes the provider respond with this from now on. */
function respond(json: object): void {
  limited.provider.script = async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', JSON_TYPE, JSON.stringify(json)));
  };
}

/** A key whose calls reserve hardly anything, because 20 calls used as much. */
async function learnedKey(): Promise<string> {
  const key = await limited.createKey({ budgets: BUDGETS });
  Object.assign(limited.use, { input: 1, output: 1 });
  for (let i = 0; i < 20; i++) expect((await limited.send(key, CHAT)).status).toBe(200);
  return key;
}

never('charges the base price of the tokens of a service tier without a price', async () => {
  const key = await learnedKey();
  const usage = { prompt_tokens: 100, completion_tokens: 100_000, total_tokens: 100_100 };
  respond({ model: 'm', service_tier: 'priority', usage });
  const { id } = await limited.send(key, CHAT);
  expect(await limited.postern.row(id)).toMatchObject({
    cost_usd: null,
    charge_usd: '1.000100000',
    charge_tokens: '100100',
  });
});

never('charges the dearest price of tokens whose counts contradict each other', async () => {
  const key = await learnedKey();
  const cache = { cache_creation_input_tokens: 10, cache_creation: { ephemeral_1h_input_tokens: 20 } };
  respond({ model: 'm', usage: { input_tokens: 990, output_tokens: 1_000, ...cache } });
  const { id } = await limited.send(key, CHAT);
  expect(await limited.postern.row(id)).toMatchObject({ cost_usd: null, charge_usd: '0.011000001' });
});

it('charges what a count that can be read costs, and at least the reservation if the input cannot be read', async () => {
  const key = await limited.createKey({ budgets: BUDGETS });
  respond({ model: 'm', usage: { prompt_tokens: 1e30, completion_tokens: 5 } });
  const few = await limited.postern.row((await limited.send(key, { ...CHAT, max_tokens: 1_000 })).id);
  expect(few.cost_usd).toBeNull();
  expect(Number(few.charge_usd)).toBeGreaterThan(0.01);
  expect(Number(few.charge_tokens)).toBeGreaterThan(1_000);
  respond({ model: 'm', usage: { prompt_tokens: 1e30, completion_tokens: 50_000 } });
  const many = await limited.postern.row((await limited.send(key, CHAT)).id);
  expect(Number(many.charge_usd)).toBeGreaterThan(0.5);
  expect(many.charge_tokens).toBe('50000');
});

it('charges at least the input that was reported before a call was broken off', async () => {
  const key = await learnedKey();
  limited.provider.script = async ({ body, socket }) => {
    await body;
    const message = { model: 'm', usage: { input_tokens: 200_000, output_tokens: 1 } };
    const start = JSON.stringify({ type: 'message_start', message });
    socket.write(STREAM_HEAD);
    socket.end(chunk(`event: message_start\ndata: ${start}\n\n`));
  };
  const response = await fetch(`${limited.postern.url}/v1/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...CHAT, stream: true }),
  });
  await response.text().catch(() => {});
  const row = await limited.postern.row(response.headers.get('x-gateway-request-id')!);
  expect(row).toMatchObject({ outcome: 'truncated', prompt_tokens: 200_000, completion_tokens: null });
  expect(Number(row.charge_usd)).toBeGreaterThanOrEqual(0.2);
  expect(Number(row.charge_tokens)).toBeGreaterThanOrEqual(200_000);
});

it.each<[string, object]>([
  ['true', { background: true }],
  ['text', { background: 'yes' }],
])('charges a call in the background the most that it can use, if "background" is %s', async (_, members) => {
  const key = await learnedKey();
  respond({ id: 'resp_1', status: 'queued', usage: null });
  const body = { model: 'm', input: 'x', max_output_tokens: 100_000, ...members };
  const { id } = await limited.send(key, body, '/v1/responses');
  const row = await limited.postern.row(id);
  expect(Number(row.charge_tokens)).toBe(100_000 + JSON.stringify(body).length);
  expect(Number(row.charge_usd)).toBeGreaterThan(1);
  const plain = await limited.send(key, { ...body, background: false }, '/v1/responses');
  expect(Number((await limited.postern.row(plain.id)).charge_usd)).toBeLessThan(0.001);
});

it('does not reserve the most for a call in the background if only a rate applies', async () => {
  const key = await limited.createKey({ limits: { tokens_per_minute: 10_000 } });
  const body = { model: 'm', input: 'x', background: true };
  expect((await limited.send(key, body, '/v1/responses')).status).toBe(200);
});

describe('a request for a service tier', () => {
  it.each<[string, object, object?]>([
    ['priority', { service_tier: 'priority' }],
    ['priority', { service_tier: 'SERVICE_TIER_PRIORITY' }],
    ['priority', { serviceTier: { type: 'priority' } }],
    ['fast', { speed: 'fast' }],
    ['priority', {}, { 'x-vertex-ai-llm-shared-request-type': 'priority' }],
    ['priority', {}, { 'X-Amzn-Bedrock-Service-Tier': 'Priority' }],
  ])('%s of %j needs a price', async (tier, members, headers = {}) => {
    const key = await limited.createKey({ budgets: BUDGETS });
    const reply = await limited.send(
      key,
      { ...CHAT, ...members },
      undefined,
      headers as Record<string, string>,
    );
    expect([reply.status, reply.code]).toEqual([403, 'model_not_priced']);
    expect(reply.error.message).toContain(`has no price for the service tier "${tier}"`);
    const open = await limited.createKey({ budgets: [{ ...BUDGETS[0], unpriced: 'allow' }] });
    expect((await limited.send(open, { ...CHAT, ...members })).status).toBe(200);
  });

  it('cannot be hidden in a compressed body, where the path names the model', async () => {
    const key = await limited.createKey({ budgets: BUDGETS });
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const send = (body: Buffer, coding?: string) =>
      fetch(`${limited.postern.url}/p/default/v1beta/models/m:generateContent`, {
        method: 'POST',
        headers: { ...headers, ...(coding && { 'content-encoding': coding }) },
        body: new Uint8Array(body),
      });
    const body = Buffer.from('{"service_tier":"priority"}');
    const hidden = await send(gzipSync(body), 'gzip');
    expect([hidden.status, hidden.headers.get('x-gateway-error')]).toEqual([400, 'model_not_determined']);
    expect([(await send(body)).status, (await send(Buffer.from('{}'))).status]).toEqual([403, 200]);
  });

  it.each(['default', 'auto', 'flex', null])('%j does not', async (tier) => {
    const key = await limited.createKey({ budgets: BUDGETS });
    expect((await limited.send(key, { ...CHAT, service_tier: tier })).status).toBe(200);
  });

  it('that has a price reserves it where the budget must never be exceeded', async () => {
    const worst = { usd: '0.015', period: 'day', reservation: 'worst' };
    const key = await limited.createKey({ budgets: [worst] });
    const body = { model: 'tiered', max_tokens: 1_000, service_tier: 'priority' };
    const reply = await limited.send(key, body);
    expect([reply.status, reply.error.message]).toEqual([
      402,
      expect.stringMatching(/may use \$0\.020\d+\./),
    ]);
    const other = await limited.createKey({ budgets: [{ ...worst, usd: '1' }] });
    const usage = { prompt_tokens: 10, completion_tokens: 1_000, total_tokens: 1_010 };
    respond({ model: 'tiered', service_tier: 'priority', usage });
    const { id } = await limited.send(other, body);
    expect(await limited.postern.row(id)).toMatchObject({
      cost_usd: '0.020020000',
      charge_usd: '0.020020000',
    });
  });
});

it('rejects models without a price once a budget that allows them is spent, and charges them nothing', async () => {
  const { id, key } = await limited.issue({
    budgets: [{ usd: '0.001', period: 'total', unpriced: 'allow' }],
  });
  const unpriced = await limited.send(key, { ...CHAT, model: 'other' });
  expect(unpriced.status).toBe(200);
  expect(await limited.postern.row(unpriced.id)).toMatchObject({ cost_usd: null, charge_usd: '0.000000000' });
  expect((await limited.send(key, CHAT)).status).toBe(200);
  await eventually(async () => Number((await limitOf(limited.postern, `key=${id}`)).used) > 0.001);
  expect((await limited.send(key, CHAT)).status).toBe(402);
  expect((await limited.send(key, { ...CHAT, model: 'other' })).status).toBe(402);
});

never.each([
  ['a short object', '{"type":"priority"}'],
  ['an object of which parsers may read either type', '{"type":"priority","type":"default"}'],
  ['an object that is too long to be read', `{"type":"priority"${' '.repeat(17_000)}}`],
])('rejects a service tier without a price in %s', async (_, tier) => {
  const key = await limited.createKey({ budgets: BUDGETS });
  const call = (serviceTier: string) =>
    fetch(`${limited.postern.url}/p/default/model/m/converse`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: `{"messages":[],"inferenceConfig":{"maxTokens":10},"serviceTier":${serviceTier}}`,
    });
  expect((await call('{"type":"default"}')).status).toBe(200);
  const response = await call(tier);
  expect([response.status, response.headers.get('x-gateway-error')]).toEqual([403, 'model_not_priced']);
});

it('rejects a session over WebRTC, whose use does not pass', async () => {
  const key = await limited.createKey({ endpoints: 'all', budgets: BUDGETS });
  const response = await fetch(`${limited.postern.url}/v1/realtime?model=m`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/sdp' },
    body: 'v=0',
  });
  expect([response.status, response.headers.get('x-gateway-error')]).toEqual([403, 'model_not_priced']);
});
