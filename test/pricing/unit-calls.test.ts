import { once } from 'node:events';
import type { Socket } from 'node:net';
import { Repricer } from '../../src/pricing/repricer.service.js';
import { UsageRollup } from '../../src/usage/usage-rollup.service.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { liveBytes } from '../support/live-bytes.js';
import { never } from '../support/never.js';
import { answer, chunk, LAST_CHUNK, RawProvider, STREAM_HEAD } from '../support/raw-provider.js';

let gateway: TestGateway;
let provider: RawProvider;
/** OCR is no inference endpoint. */
let key: string;
let respond: (socket: Socket) => void | Promise<void>;
beforeAll(async () => {
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    await respond(socket);
  });
  gateway = await startTestGateway();
  key = await gateway.createKey({ endpoints: 'all' });
  const { url } = provider;
  for (const [name, catalog] of Object.entries({
    ...{ openai: 'openai', mistral: 'mistral', mine: null, reports: 'openrouter' },
  }))
    await gateway.admin('POST', '/providers', { name, url, secret: null, catalog });
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});

const JSON_TYPE = ['Content-Type: application/json'];
const respondJson = (json: object) => {
  respond = (socket) => void socket.write(answer('200 OK', JSON_TYPE, JSON.stringify(json)));
};

/** Calls the provider. @returns the row */
async function call(name: string, path: string, body: Record<string, unknown>) {
  const response = await fetch(`${gateway.url}/p/${name}/v1/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  for await (const part of response.body!) void part;
  return gateway.row(response.headers.get('x-gateway-request-id')!);
}

const setPrice = (model: string, price: object) =>
  gateway.admin<{ id: string }>('POST', '/prices', { catalog: 'mine', model, ...price });

/** Events of a stream with as much text between them. */
function* events(items: object[], textBytes: number): Generator<string> {
  const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`;
  const delta = event({ type: 'response.output_text.delta', delta: 'x'.repeat(4_000) });
  yield event({ type: 'response.created', response: { model: 'gpt-5', output: [] } });
  for (const [i, item] of items.entries()) {
    yield event({ type: 'response.output_item.done', output_index: i, item });
    for (let sent = 0; sent < textBytes / items.length; sent += delta.length) yield delta;
  }
  const usage = { input_tokens: 1_000, output_tokens: 100, total_tokens: 1_100 };
  // It repeats all, so that its list is in neither end of a large response.
  const output = [...items, { type: 'message', content: 'x'.repeat(textBytes > 0 ? 200_000 : 9) }];
  yield event({ type: 'response.completed', response: { model: 'gpt-5', output, usage } });
}

function respondEvents(items: object[], textBytes: number, noteSent = (_bytes: number) => {}): void {
  respond = async (socket) => {
    socket.write(STREAM_HEAD);
    for (const event of events(items, textBytes)) {
      if (!socket.write(chunk(event))) await once(socket, 'drain');
      noteSent(event.length);
    }
    socket.write(LAST_CHUNK);
  };
}

const SEARCHES = [1, 2, 3].map((i) => ({
  type: 'web_search_call',
  id: `ws_${i}`,
  status: 'completed',
  action: { type: 'search', query: 'a' },
}));
const TOKENS = { input: '1', output: '10' };

describe('a stream of OpenAI', () => {
  it.each([
    ['small', 0],
    ['larger than its copy', 600_000],
  ])('costs its web searches too: %s', async (_, textBytes) => {
    respondEvents(SEARCHES, textBytes);
    const row = await call('openai', 'responses', { model: 'gpt-5', stream: true });
    expect(row).toMatchObject({ prompt_tokens: 1_000, extra_usage: { web_searches: 3 } });
    // 1,000 × 1.25 + 100 × 10 USD per million, and 3 × 10 USD per thousand.
    expect(row.cost_usd).toBe('0.032250000');
  });

  it('costs nothing more for tools that were declared and not run', async () => {
    respondEvents([{ type: 'message', content: [] }], 600_000);
    const tools = [{ type: 'web_search' }, { type: 'code_interpreter', container: { type: 'auto' } }];
    const row = await call('openai', 'responses', { model: 'gpt-5', stream: true, tools });
    expect(row).toMatchObject({ extra_usage: null, cost_usd: '0.002250000' });
  });

  it.each([
    ['names tools', 'uncounted', { ...TOKENS, extra: { code_sessions: '30' } }],
    ['names none', 'without-tools', TOKENS],
  ])(
    'has no cost but a lower bound if tools could not be counted, also if its price %s',
    async (_, model, price) => {
      await setPrice(model, price);
      respondEvents([{ type: 'code_interpreter_call', status: 'completed' }], 600_000);
      expect(await call('mine', 'responses', { model, stream: true })).toMatchObject({
        ...{ usage_final: false, extra_usage: { uncounted_tools: 1 }, prompt_tokens: 1_000 },
        ...{ cost_usd: null, cost_low_usd: '0.002000000', cost_high_usd: null },
      });
    },
  );

  never('has the cost that its provider reports if tools could not be counted', async () => {
    const output = [{ type: 'code_interpreter_call', status: 'completed' }];
    const usage = { input_tokens: 1_000, output_tokens: 100, total_tokens: 1_100, cost: 0.05 };
    respondJson({ model: 'any', output, usage });
    expect(await call('reports', 'responses', { model: 'any' })).toMatchObject({
      ...{ usage_final: true, extra_usage: { uncounted_tools: 1 }, cost_usd: '0.050000000' },
    });
  });

  it('of 100 MiB with tools takes no more memory than a small one', async () => {
    respondEvents(SEARCHES, 0);
    await call('openai', 'responses', { model: 'gpt-5', stream: true });
    const before = liveBytes();
    let [sent, most] = [0, 0];
    respondEvents(Array<object[]>(1_000).fill(SEARCHES).flat(), 104_857_600, (bytes) => {
      const looked = Math.floor(sent / 20_000_000);
      sent += bytes;
      if (Math.floor(sent / 20_000_000) > looked) most = Math.max(most, liveBytes());
    });
    const row = await call('openai', 'responses', { model: 'gpt-5', stream: true });
    expect(row).toMatchObject({ extra_usage: { web_searches: 3_000 } });
    expect(Number(row.response_bytes)).toBeGreaterThan(100_000_000);
    expect(most).toBeGreaterThan(0);
    expect(most - before).toBeLessThan(50_000_000);
  });
});

describe('a call that is billed by units', () => {
  it('of whisper-1 costs its seconds, at the price of the catalog', async () => {
    respondJson({ text: 'a', usage: { type: 'duration', seconds: 100 } });
    const row = await call('openai', 'audio/transcriptions', { model: 'whisper-1' });
    expect(row).toMatchObject({ prompt_tokens: null, extra_usage: { input_audio_seconds: 100 } });
    // 0.36 USD an hour.
    expect(row.cost_usd).toBe('0.010000000');
    respondJson({ text: 'a' });
    expect(await call('openai', 'audio/transcriptions', { model: 'whisper-1' })).toMatchObject({
      extra_usage: null,
      cost_usd: null,
    });
  });

  it('of OCR costs its pages', async () => {
    const usage_info = { pages_processed: 29, doc_size_bytes: 3_002_783 };
    respondJson({ pages: [], model: 'mistral-ocr-2512', usage_info });
    expect(await call('mistral', 'ocr', { model: 'mistral-ocr-2512' })).toMatchObject({
      model: 'mistral-ocr-2512',
      extra_usage: { pages: 29 },
      cost_usd: '0.058000000',
    });
  });

  never(
    'of images costs each of them, by size and quality, as the response or the request names them',
    async () => {
      const tiers = [
        { size: '1024x1536', extra: { images: '63' } },
        { size: '1024x1536', quality: 'high', extra: { images: '250' } },
      ];
      await setPrice('image-*', { extra: { images: '40' }, tiers });
      const data = [{ url: 'https://images.example/1' }, { url: 'https://images.example/2' }];
      respondJson({ created: 1, data });
      const request = { model: 'image-1', prompt: 'a', n: 2 };
      const costOf = async (body: object) =>
        (await call('mine', 'images/generations', { ...request, ...body })).cost_usd;
      expect(await costOf({ size: '1024x1024', quality: 'low' })).toBe('0.080000000');
      expect(await costOf({ size: '1024x1536', quality: 'low' })).toBe('0.126000000');
      expect(await costOf({ size: '1024x1536', quality: 'high' })).toBe('0.500000000');
      expect(await costOf({ size: 'auto', quality: 'high' })).toBeNull();
      expect(await costOf({})).toBeNull();
      respondJson({
        created: 1,
        data: [{ b64_json: 'i'.repeat(300_000) }],
        size: '1024x1536',
        quality: 'low',
      });
      expect(await costOf({ size: '1024x1024', quality: 'high' })).toBe('0.063000000');
    },
  );

  it('of speech costs the characters of its request', async () => {
    await setPrice('speech', { extra: { input_characters: '0.015' } });
    respond = (socket) =>
      void socket.write(answer('200 OK', ['Content-Type: audio/mpeg'], Buffer.alloc(999)));
    const costOf = (input: unknown) => call('mine', 'audio/speech', { model: 'speech', input, voice: 'a' });
    expect(await costOf('Hi "é" 😀')).toMatchObject({
      extra_usage: { input_characters: 8 },
      cost_usd: '0.000120000',
    });
    expect(await costOf('é'.repeat(4_096))).toMatchObject({ extra_usage: { input_characters: 4_096 } });
    for (const input of [undefined, 5, 'a'.repeat(20_000)])
      expect(await costOf(input)).toMatchObject({ extra_usage: null, cost_usd: null });
    respond = (socket) => void socket.write(answer('400 Bad Request', JSON_TYPE, '{"error":{}}'));
    expect(await costOf('Hi')).toMatchObject({ status: 400, extra_usage: null, cost_usd: null });
  });

  it('is unpriced everywhere if nothing has a price', async () => {
    respondJson({ created: 1, data: [{ url: 'https://images.example/1' }] });
    const row = await call('mine', 'images/generations', { model: 'unpriced-image' });
    expect(row).toMatchObject({ usage_final: true, extra_usage: { images: 1 }, cost_usd: null });
    const inView = () =>
      gateway.database.query(
        "SELECT unpriced_calls::int AS calls FROM usage_by_model_day WHERE model = 'unpriced-image'",
      );
    expect(await inView()).toEqual([{ calls: 1 }]);
    type Usage = { data: { model: string; unpriced_calls: number }[] };
    const { data } = await gateway.admin<Usage>('GET', '/usage?group_by=model&model=unpriced-image');
    expect(data).toMatchObject([{ unpriced_calls: 1 }]);
    type Missing = { data: { model: string; calls: number }[] };
    const missing = await gateway.admin<Missing>('GET', '/prices/missing');
    expect(missing.data).toContainEqual(
      expect.objectContaining({ provider: 'mine', model: 'unpriced-image', calls: 1 }),
    );
    await gateway.gateway.app.get(UsageRollup, { strict: false }).catchUp();
    expect(await inView()).toEqual([{ calls: 1 }]);
    expect(
      await gateway.database.query(
        "SELECT unpriced_calls::int AS calls FROM usage_day WHERE model = 'unpriced-image'",
      ),
    ).toEqual([{ calls: 1 }]);
  });

  it('gets a cost from a price that was set later', async () => {
    respondJson({ created: 1, data: [{ url: 'https://images.example/1' }] });
    const row = await call('mine', 'images/generations', { model: 'late-image' });
    expect(row).toMatchObject({ extra_usage: { images: 1 }, cost_usd: null });
    await gateway.database.find(
      "SELECT FROM unpriced_model WHERE provider = 'mine' AND model = 'late-image'",
    );
    const repricer = gateway.gateway.app.get(Repricer, { strict: false });
    const range = { from: new Date(Date.now() - 3_600_000), to: new Date(), model: 'late-image' };
    const changed = await repricer.exclusively(async (client) => {
      // The repair of costs cannot come first.
      await setPrice('late-image', { extra: { images: '40' } });
      return repricer.reprice(client, range);
    }, 10_000);
    expect(changed).toMatchObject({ rows: 1, changed: 1, cost_after: '0.040000000' });
  });
});

describe('a service tier with a factor', () => {
  it('halves the tokens of a batch, at the price of the catalog', async () => {
    const usage = { prompt_tokens: 1_000_000, completion_tokens: 0 };
    respondJson({ model: 'gpt-4o-mini', service_tier: 'batch', usage });
    const body = { model: 'gpt-4o-mini' };
    expect((await call('openai', 'chat/completions', body)).cost_usd).toBe('0.075000000');
    const custom = {
      ...TOKENS,
      catalog: 'openai',
      model: 'gpt-4o-mini',
      tiers: [{ service_tier: 'batch', factor: '0.1' }],
    };
    await gateway.admin('POST', '/prices', custom);
    expect((await call('openai', 'chat/completions', body)).cost_usd).toBe('0.100000000');
  });
});
