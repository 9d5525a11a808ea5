import { Periods } from '../../src/limits/ledger/periods.js';
import type { LimitRule } from '../../src/limits/ledger/rule-set.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { answer, chunk, LAST_CHUNK, STREAM_HEAD } from '../support/raw-provider.js';
import { charged, JSON_TYPE, limitedForFile, limitOf, type Reply } from './limited-gateway.js';

const limited = limitedForFile();

async function send(key: string, method: string, path: string, body: object | null, headers = {}) {
  const response = await fetch(limited.postern.url + path, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: body && JSON.stringify(body),
  });
  await response.arrayBuffer();
  return {
    status: response.status,
    code: response.headers.get('x-gateway-error'),
    id: response.headers.get('x-gateway-request-id')!,
  };
}

never(
  'charges what was reserved for a stream of Anthropic that the client breaks off before the output is counted',
  async () => {
    const key = await limited.createKey({
      budgets: [
        { usd: '5', period: 'month' },
        { tokens: 1_000_000, period: 'day' },
      ],
    });
    limited.provider.script = async ({ body, socket }) => {
      await body;
      socket.write(STREAM_HEAD);
      const start = {
        type: 'message_start',
        message: { model: 'm', usage: { input_tokens: 10, output_tokens: 1 } },
      };
      socket.write(chunk(`event: message_start\ndata: ${JSON.stringify(start)}\n\n`));
    };
    const abort = new AbortController();
    const response = await fetch(`${limited.postern.url}/v1/messages`, {
      method: 'POST',
      signal: abort.signal,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', max_tokens: 2_000, stream: true, messages: [] }),
    });
    await response.body!.getReader().read();
    abort.abort();
    const row = await limited.postern.row(response.headers.get('x-gateway-request-id')!);
    expect(row).toMatchObject({ outcome: 'client_aborted', prompt_tokens: 10, completion_tokens: null });
    expect(Number(row.charge_usd)).toBeGreaterThan(0.02);
    expect(Number(row.charge_tokens)).toBeGreaterThan(2_000);
  },
);

it('charges a long stream of unknown usage by its length, after short calls that made it reserve little', async () => {
  const key = await limited.createKey({
    budgets: [
      { usd: '5', period: 'month' },
      { tokens: 1_000_000, period: 'day' },
    ],
  });
  const call = { model: 'm', max_tokens: 4_000, messages: [] };
  Object.assign(limited.use, { input: 1, output: 1 });
  let last!: Reply;
  for (let i = 0; i < 20; i++) last = await limited.send(key, call);
  expect(last.status).toBe(200);
  limited.provider.script = async ({ body, socket }) => {
    await body;
    socket.write(STREAM_HEAD);
    const event = `data: ${JSON.stringify({ model: 'm', choices: [{ delta: { content: 'x'.repeat(960) } }] })}\n\n`;
    for (let i = 0; i < 300; i++) socket.write(chunk(event));
    socket.write(LAST_CHUNK);
  };
  const long = await limited.send(key, { ...call, stream: true });
  const row = await limited.postern.row(long.id);
  expect(row).toMatchObject({ outcome: 'completed', completion_tokens: null, cost_usd: null });
  expect(Number(row.charge_usd)).toBeGreaterThan(0.003);
  expect(Number(row.charge_tokens)).toBeGreaterThan(300);
});

never.each([
  ['GET', '/v1/models/m:generateContent', { 'x-http-method-override': 'POST' }],
  ['GET', '/v1/models', { 'x-original-url': '/v1/chat/completions' }],
  ['POST', '/v1/moderations', { 'x-rewrite-url': '/v1/chat/completions' }],
])('takes %s %s with %j for no free request', async (method, path, headers) => {
  const body = method === 'GET' ? null : { model: 'm' };
  const budget = await limited.createKey({ endpoints: 'all', budgets: [{ usd: '0', period: 'day' }] });
  expect(await send(budget, method, path, body, headers)).toMatchObject({
    status: 400,
    code: 'model_not_determined',
  });
  const list = await limited.createKey({ endpoints: 'all', models: ['m'] });
  expect(await send(list, method, path, body, headers)).toMatchObject({
    status: 400,
    code: 'model_not_determined',
  });
});

never.each([
  '/openai/deployments/m/chat/completions',
  '/v1beta/models/m:generateContent',
  '/model/m/converse',
  '/v1/projects/p/locations/l/publishers/google/models/m:rawPredict',
])('charges the model in the path of %s, whatever model the body names', async (path) => {
  const prices = { catalog: 'default', model: `cheap-${path.length}`, input: '0.001', output: '0.001' };
  await limited.postern.admin('POST', '/prices', prices);
  const { id, key } = await limited.issue({ models: ['m'], budgets: [{ usd: '1', period: 'day' }] });
  const first = await send(key, 'POST', `/p/default${path}`, { model: prices.model });
  expect(await limited.postern.row(first.id)).toMatchObject({
    model: 'm',
    cost_usd: '0.001100000',
    charge_usd: '0.001100000',
  });
  await eventually(async () => (await limitOf(limited.postern, `key=${id}`)).used === '0.0011');
});

/** Of a provider with paths of its own, whose responses report usage. */
const UNKNOWN = '/v1/tenants/t/chat/completions';

it.each([{ tokens: 150 }, { usd: '0.001', unpriced: 'allow' }])(
  'rejects requests to endpoints that it does not know once a budget of %j is spent, and charges them nothing without usage',
  async (amount) => {
    const { id, key } = await limited.issue({ endpoints: 'all', budgets: [{ ...amount, period: 'total' }] });
    expect((await send(key, 'POST', UNKNOWN, { model: 'm' })).status).toBe(200);
    await eventually(async () => Number((await limitOf(limited.postern, `key=${id}`)).used) > 0);
    expect((await send(key, 'POST', UNKNOWN, { model: 'm' })).status).toBe(402);
    expect((await send(key, 'GET', '/v1/files', null)).status).toBe(200);

    limited.provider.script = async ({ body, socket }) => {
      await body;
      socket.write(answer('200 OK', JSON_TYPE, '{}'));
    };
    const open = await limited.issue({ endpoints: 'all', budgets: [{ ...amount, period: 'total' }] });
    const upload = await send(open.key, 'POST', UNKNOWN, {});
    expect(upload.status).toBe(200);
    const { charge_usd, charge_tokens } = await limited.postern.row(upload.id);
    expect(Number(charge_usd ?? charge_tokens)).toBe(0);
  },
);

describe('with a budget that must never be exceeded, a request reserves', () => {
  /** Output tokens: the longest, if nothing says less. */
  const LONGEST = 131_072;
  const PROMPTS = ['a', 'b', 'c,"]'];
  never.each<[string, object, number]>([
    ['/v1/chat/completions', { max_tokens: 1_000 }, 1_000],
    ['/v1/chat/completions', { max_tokens: 1_000, max_completion_tokens: 3_000 }, 3_000],
    ['/v1/chat/completions', { max_output_tokens: 1 }, LONGEST],
    ['/v1/chat/completions', { generationConfig: { maxOutputTokens: 1 } }, LONGEST],
    ['/v1/chat/completions', { max_tokens: 1_000, n: '5' }, 5_000],
    ['/v1/chat/completions', { max_tokens: 1_000, prompt: PROMPTS }, 1_000],
    ['/v1/completions', { max_tokens: 1_000, prompt: PROMPTS }, 3_000],
    ['/v1/completions', { max_tokens: 1_000, prompt: PROMPTS, n: 2 }, 6_000],
    ['/v1/completions', { max_tokens: 1_000, prompt: [[1, 2], [3]] }, 2_000],
    ['/v1/completions', { max_tokens: 1_000, prompt: [1, 2, 3] }, 1_000],
    ['/v1/completions', { max_tokens: 1_000, prompt: 'a' }, 1_000],
    ['/v1/responses', { max_tokens: 1 }, LONGEST],
    ['/v1/responses', { max_output_tokens: 1_000 }, 1_000],
    ['/v1/messages', { max_tokens: 1_000 }, 1_000],
    ['/p/default/api/chat', { max_tokens: 1 }, LONGEST],
    ['/p/default/v1beta/models/m:generateContent', { generationConfig: { maxOutputTokens: 900 } }, 900],
    [
      '/p/default/v1beta/models/m:generateContent',
      { generation_config: { max_output_tokens: 900, candidate_count: '3' } },
      2_700,
    ],
    ['/p/default/v1beta/models/m:generateContent', { max_tokens: 1 }, LONGEST],
    [
      '/p/default/v1beta1/publishers/google/models/m:generateContent',
      { generationConfig: { maxOutputTokens: 900 } },
      900,
    ],
    ['/p/default/openai/responses', { max_output_tokens: 1_000 }, 1_000],
    ['/p/default/model/m/converse', { inferenceConfig: { maxTokens: 900 } }, 900],
  ])('at %s with %j %d tokens of output', async (path, members, expected) => {
    limited.provider.script = async ({ body, socket }) => {
      await body;
      socket.write(answer('200 OK', JSON_TYPE, '{}'));
    };
    const key = await limited.createKey({
      endpoints: 'all',
      budgets: [{ tokens: 10_000_000, period: 'day', reservation: 'worst' }],
    });
    const body = { model: 'm', ...members };
    const { charge_tokens } = await limited.postern.row((await send(key, 'POST', path, body)).id);
    expect(Number(charge_tokens) - JSON.stringify(body).length).toBe(expected);
  });
});

it('exchanges the largest budgets that can be set', async () => {
  const { key } = await limited.issue({
    budgets: [
      { usd: '1000000000', period: 'month' },
      { tokens: 1_000_000_000_000, period: 'day' },
    ],
  });
  const before = await limited.postern.database.query<{ count: number }>(
    'SELECT count(*)::int AS count FROM request_log WHERE charge_usd IS NOT NULL',
  );
  expect((await send(key, 'POST', '/v1/chat/completions', { model: 'm', max_tokens: 10 })).status).toBe(200);
  await charged(limited.postern, before[0]!.count + 1);
});

it('requests an unknown period once, however many calls there are', () => {
  const periods = new Periods();
  const rule = { period: 'day', timeZone: 'Asia/Kathmandu' } as LimitRule;
  const at = Date.UTC(2026, 10, 22, 12);
  for (let i = 0; i < 1_000; i++) expect(periods.of(rule, at + i)).toBeNull();
  expect(periods.asked()).toHaveLength(1);
  periods.add([['day', 'Asia/Kathmandu', at + 1_000, at + 86_400_000, at - 1_000]]);
  expect(periods.of(rule, at)).toMatchObject({ starts: at + 1_000 });
  expect(periods.asked()).toEqual([]);
});
