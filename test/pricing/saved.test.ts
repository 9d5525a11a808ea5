import { randomUUID } from 'node:crypto';
import { UsageRollup } from '../../src/usage/usage-rollup.service.js';
import { Scrape } from '../observability/scrape.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { answer, chunk, LAST_CHUNK, RawProvider, STREAM_HEAD } from '../support/raw-provider.js';

/** 600 × 0.15 + 400 × 0.075 + 200 × 0.60 USD per million. */
const COST = '0.000240000';
const USAGE = {
  prompt_tokens: 1_000,
  completion_tokens: 200,
  prompt_tokens_details: { cached_tokens: 400 },
};

let gateway: TestGateway;
let key: string;
/** What the provider reports next; null: nothing. */
let usage: object | null = USAGE;
beforeAll(async () => {
  const provider = await RawProvider.start(async ({ body, socket }) => {
    const asked = (await body).bytes.toString();
    const text = JSON.stringify(usage === null ? {} : { usage });
    if (!asked.includes('"stream":true')) {
      socket.write(answer('200 OK', ['Content-Type: application/json'], text));
      return;
    }
    socket.write(STREAM_HEAD);
    socket.write(chunk(`data: ${text}\n\ndata: [DONE]\n\n`));
    socket.write(LAST_CHUNK);
  });
  gateway = await startTestGateway();
  for (const catalog of ['openai', 'openrouter', 'groq'])
    await gateway.admin('POST', '/providers', { name: catalog, url: provider.url, secret: null, catalog });
  const price = { effective_from: '2020-01-01T00:00:00Z', output: '0.6' };
  await gateway.admin('POST', '/prices', {
    catalog: 'openai',
    model: 'priced',
    input: '0.15',
    cached_input: '0.075',
    ...price,
  });
  key = await gateway.createKey({ cache: { ttl_seconds: 600 } });
});
afterAll(() => gateway.stop());

const fresh = (model: string, more: object = {}) => ({ model, messages: [], id: randomUUID(), ...more });

async function send(provider: string, body: object, mode?: string): Promise<Response> {
  const response = await fetch(`${gateway.url}/p/${provider}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      ...(mode && { 'x-gateway-cache': mode }),
    },
    body: JSON.stringify(body),
  });
  await response.text();
  return response;
}

/** The rows of a call and of its repetition from the cache. */
async function twice(provider: string, body: object) {
  const first = await send(provider, body);
  let hit!: Response;
  await eventually(async () => (hit = await send(provider, body, 'only-if-cached')).status === 200);
  expect(hit.headers.get('x-gateway-cache')).toBe('hit');
  const idOf = (response: Response) => response.headers.get('x-gateway-request-id')!;
  return { called: await gateway.row(idOf(first)), cached: await gateway.row(idOf(hit)) };
}

const NO_TOKENS = {
  prompt_tokens: null,
  completion_tokens: null,
  cached_tokens: null,
  cache_write_tokens: null,
  reasoning_tokens: null,
  extra_usage: null,
};
const FREE = { ...NO_TOKENS, outcome: 'cached', cost_usd: '0.000000000', price_id: null };

describe('a call from the cache costs nothing, and its row says what it saved', () => {
  it.each([
    ['JSON', {}],
    ['a stream', { stream: true }],
  ])('%s: the tokens of the stored response at the price of the model', async (_, more) => {
    usage = USAGE;
    const { called, cached } = await twice('openai', fresh('priced', more));
    expect(called).toMatchObject({ outcome: 'completed', cost_usd: COST, saved_usd: null });
    expect(cached).toMatchObject({ ...FREE, model: 'priced', saved_usd: COST });
  });

  never('a provider that reports the cost: that one', async () => {
    usage = { ...USAGE, cost: 0.5 };
    const { called, cached } = await twice('openrouter', fresh('reported'));
    expect(called).toMatchObject({ cost_usd: '0.500000000', saved_usd: null });
    expect(cached).toMatchObject({ ...FREE, saved_usd: '0.500000000' });
  });

  it.each([
    ['without a price', USAGE],
    ['without token counts', null],
  ])('%s it is not known', async (_, reported) => {
    usage = reported;
    const { cached } = await twice('groq', fresh('unknown-model'));
    expect(cached).toMatchObject({ ...FREE, saved_usd: null });
  });
});

describe('the sum of what was saved', () => {
  const get = (path: string) =>
    gateway.admin<{ data: Record<string, unknown>[]; totals: Record<string, unknown> }>('GET', path);
  const logged = async () =>
    (
      await gateway.database.query<Record<string, unknown>>(
        `SELECT provider, sum(saved_usd)::text AS saved_usd, sum(cost_usd)::text AS cost_usd,
           sum(prompt_tokens)::float8 AS prompt_tokens FROM request_log GROUP BY provider ORDER BY provider`,
      )
    ).map((row): Record<string, unknown> => ({ ...row, prompt_tokens: row.prompt_tokens ?? 0 }));

  never('is the same in the rows, in the half-hourly sums and in those of days', async () => {
    usage = USAGE;
    await twice('openai', fresh('priced'));
    const rows = await logged();
    const saved = rows.find(({ provider }) => provider === 'openai')!.saved_usd;
    expect(Number(saved)).toBeGreaterThanOrEqual(2 * Number(COST));
    const named = ({ provider, saved_usd, cost_usd, prompt_tokens }: Record<string, unknown>) => ({
      provider,
      saved_usd,
      cost_usd,
      prompt_tokens,
    });
    // A filter that only rows can answer, then the sums before and after they are added up.
    const fromRows = await get('/usage?group_by=provider&recorded_after=1970-01-01T00:00:00Z');
    expect(fromRows.data.map(named)).toEqual(rows);
    expect((await get('/usage?group_by=provider')).data.map(named)).toEqual(rows);
    // A round that is already under way may leave out the last rows.
    await gateway.gateway.app.get(UsageRollup).catchUp();
    const fromSlots = await get('/usage?group_by=provider');
    expect(fromSlots.data.map(named)).toEqual(rows);
    expect(fromSlots.totals.saved_usd).toBe(fromRows.totals.saved_usd);
    const tables = ['usage_slot', 'usage_day'].map(
      (table) => `(SELECT sum(saved_usd)::text FROM ${table}) AS ${table}`,
    );
    const [sums] = await gateway.database.query(
      `SELECT ${tables.join(', ')}, (SELECT sum(saved_usd)::text FROM request_log) AS rows`,
    );
    const { rows: sum } = sums as Record<string, string>;
    expect(sums).toEqual({ usage_slot: sum, usage_day: sum, rows: sum });
  });

  it('is shown to the key itself, and counted by the metrics, which count no tokens of it', async () => {
    const own = await fetch(`${gateway.url}/self/v1/usage`, { headers: { authorization: `Bearer ${key}` } });
    const [sums] = await gateway.database.query<{ saved: string; tokens: string }>(
      `SELECT sum(saved_usd)::text AS saved, sum(prompt_tokens)::text AS tokens FROM request_log
       WHERE key_id = (SELECT key_id FROM request_log ORDER BY id DESC LIMIT 1)`,
    );
    expect(((await own.json()) as { today: object }).today).toMatchObject({ saved_usd: sums!.saved });
    const scrape = await Scrape.of(gateway.url);
    expect(scrape.sum('postern_saved_usd_total')).toBeCloseTo(Number(sums!.saved), 9);
    expect(scrape.sum('postern_tokens_total', { kind: 'prompt' })).toBe(Number(sums!.tokens));
  });
});
