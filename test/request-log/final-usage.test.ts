import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ANSWERS, type RecordedAnswer } from '../bodies/usage/recorded-responses.js';
import { FORMATS } from '../bodies/usage/recorded-formats.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type LogRowView, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { Scrape } from '../observability/scrape.js';

/** What the provider sends: this body up to this byte, and then it breaks the connection unless that is all. */
interface Sent {
  contentType: string;
  body: Buffer;
  cut: number;
  status?: number;
}

const sent = new Map<string, Sent>();
let server: Server;
let postern: TestGateway;
beforeAll(async () => {
  server = createServer((request, response) => {
    request.resume().on('end', () => {
      const { contentType, body, cut, status = 200 } = sent.get(request.headers['x-case'] as string)!;
      response.writeHead(status, { 'content-type': contentType });
      response.write(body.subarray(0, cut), () => {
        if (cut < body.length) response.destroy();
        else response.end();
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  postern = await startTestGateway({ PROVIDER_URL: `http://127.0.0.1:${port}` });
  await postern.admin('POST', '/prices', { catalog: 'default', model: 'priced*', input: '1', output: '10' });
});
afterAll(async () => {
  await postern.stop();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

let cases = 0;
async function send(
  endpoint: string,
  response: Sent,
  body: object = { model: 'priced' },
  method = 'POST',
  chunked = false,
): Promise<string> {
  const name = `${cases++}`;
  sent.set(name, response);
  const answer = await fetch(`${postern.url}/p/default${endpoint}`, {
    method,
    headers: { authorization: `Bearer ${postern.key}`, 'content-type': 'application/json', 'x-case': name },
    ...(method === 'POST' && { body: chunked ? inChunks(JSON.stringify(body)) : JSON.stringify(body) }),
    duplex: 'half',
  });
  await answer.arrayBuffer().catch(() => {});
  return answer.headers.get('x-gateway-request-id')!;
}

/** A body of unknown length. */
function inChunks(body: string): ReadableStream<Uint8Array> {
  return new Blob([body]).stream();
}

async function call(...args: Parameters<typeof send>): Promise<LogRowView> {
  return postern.row(await send(...args));
}

const SSE = 'text/event-stream';
const JSON_TYPE = 'application/json';
const stream = (...events: object[]) =>
  Buffer.from(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''));
/** The stream, and then a cut. */
const cutAfter = (...events: object[]): Sent => {
  const body = stream(...events, {});
  return { contentType: SSE, body, cut: body.length - 4 };
};
const whole = (body: Buffer | object, contentType = SSE, status = 200): Sent => {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
  return { contentType, body: bytes, cut: bytes.length, status };
};

const GEMINI = '/v1beta/models/priced-gemini:streamGenerateContent';
const gemini = (output: number, finishReason?: string) => ({
  candidates: [{ content: { parts: [{ text: 'x' }] }, ...(finishReason && { finishReason }) }],
  usageMetadata: { promptTokenCount: 100, candidatesTokenCount: output, totalTokenCount: 100 + output },
});

never('has no cost of a stream of Gemini that was cut, and what was reported as its least', async () => {
  const request = { contents: [], generationConfig: { maxOutputTokens: 500, candidateCount: 2 } };
  expect(await call(GEMINI, cutAfter(gemini(10), gemini(20)), request)).toMatchObject({
    usage_final: false,
    completion_tokens: 20,
    cost_usd: null,
    cost_low_usd: '0.000300000',
    cost_high_usd: '0.010100001',
    output_limit: '1000',
  });
  const body = stream(gemini(10), gemini(20, 'STOP'));
  const final = { usage_final: true, cost_usd: '0.000300000', cost_low_usd: null, cost_high_usd: null };
  expect(await call(GEMINI, whole(body), request)).toMatchObject(final);
  // Cut after its last event.
  const ofOne = { contents: [] };
  expect(await call(GEMINI, cutAfter(gemini(10), gemini(20, 'STOP')), ofOne)).toMatchObject({
    ...final,
    outcome: 'truncated',
  });
});

never('knows the input of a stream of Anthropic that was cut', async () => {
  const message = { model: 'priced', usage: { input_tokens: 1_000, output_tokens: 1 } };
  const body = { model: 'priced', max_tokens: 50 };
  expect(await call('/v1/messages', cutAfter({ type: 'message_start', message }), body)).toMatchObject({
    usage_final: false,
    prompt_tokens: 1_000,
    cost_usd: null,
    cost_low_usd: '0.001000000',
    cost_high_usd: '0.001500001',
  });
});

never('does not take counts in every chunk for the last ones', async () => {
  const chunk = (output: number) => ({
    choices: [{ delta: { content: 'x' } }],
    usage: { prompt_tokens: 10, completion_tokens: output, total_tokens: 10 + output },
  });
  const row = await call('/v1/chat/completions', whole(stream(chunk(1), chunk(2))), {
    model: 'priced',
    max_tokens: 9,
    n: 2,
  });
  expect(row).toMatchObject({
    usage_final: false,
    outcome: 'completed',
    cost_usd: null,
    cost_low_usd: '0.000030000',
    cost_high_usd: '0.000190001',
  });
});

it('takes the first of several candidates that ends for the end only of a whole stream', async () => {
  const candidate = (index: number, finishReason?: string) => ({
    index,
    ...(finishReason && { finishReason }),
  });
  const event = (tokens: number, ...candidates: object[]) => ({
    candidates,
    usageMetadata: { promptTokenCount: 5, candidatesTokenCount: tokens, totalTokenCount: 5 + tokens },
  });
  const first = event(10, candidate(0, 'STOP'));
  const body = { generationConfig: { candidateCount: 2, maxOutputTokens: 50 } };
  expect(await call(GEMINI, cutAfter(first), body)).toMatchObject({
    usage_final: false,
    cost_usd: null,
    cost_low_usd: '0.000105000',
    cost_high_usd: '0.001005001',
  });
  expect(await call(GEMINI, whole(stream(first, event(30, candidate(1, 'STOP')))), body)).toMatchObject({
    usage_final: true,
    cost_usd: '0.000305000',
  });
});

it('bounds a stream without usage by its bytes and the longest output', async () => {
  const body = { model: 'priced' };
  expect(await call('/v1/chat/completions', whole(stream({ choices: [] })), body)).toMatchObject({
    usage_final: false,
    output_limit: null,
    cost_low_usd: '0.000000000',
    cost_high_usd: (1.310_720_001 + JSON.stringify(body).length / 1e6).toFixed(9),
  });
});

describe('input that the request does not show', () => {
  const CONTENT = [{ type: 'image_url', image_url: { url: 'https://images.example/1.png' } }];
  const CHAT = '/v1/chat/completions';
  const noUsage = whole(stream({ choices: [] }));
  const BODIES: readonly [string, object, boolean][] = [
    ['the URL of an image', { messages: [{ role: 'user', content: CONTENT }] }, false],
    ['a previous response', { previous_response_id: 'resp_1', input: 'a' }, false],
    ['a tool of the provider', { tools: [{ type: 'web_search' }] }, true],
  ];

  it.each(BODIES)('leaves no upper bound: %s', async (_, body, hasTools) => {
    const before = await unbounded();
    const row = await call(CHAT, noUsage, { model: 'priced', max_tokens: 5, ...body });
    expect(row).toMatchObject({
      usage_final: false,
      input_limit: null,
      output_limit: '5',
      extra_usage: hasTools ? { uncounted_tools: 1 } : null,
      cost_low_usd: '0.000000000',
      cost_high_usd: null,
    });
    expect(await unbounded()).toBe(before + 1);
  });

  it.each(BODIES)('that is reported has a bound, unless it may grow: %s', async (_, body, hasTools) => {
    const message = { model: 'priced', usage: { input_tokens: 1_000, output_tokens: 1 } };
    const row = await call('/v1/messages', cutAfter({ type: 'message_start', message }), {
      ...{ model: 'priced', max_tokens: 50 },
      ...body,
    });
    expect(row).toMatchObject({
      cost_low_usd: '0.001000000',
      cost_high_usd: hasTools ? null : '0.001500001',
    });
  });

  it('may be in a body that was streamed by, wherever it is', async () => {
    const padding = 'x'.repeat(300_000);
    const body = { model: 'priced', padding, max_tokens: 5 };
    const length = JSON.stringify(body).length;
    expect(await call(CHAT, noUsage, body)).toMatchObject({
      input_limit: String(length),
      cost_high_usd: ((length + 50) / 1e6 + 1e-9).toFixed(9),
    });
    const input = [{ type: 'input_file', file_id: 'file-1' }];
    for (const elsewhere of [
      { input, ...body },
      { ...body, input },
    ])
      expect(await call(CHAT, noUsage, elsewhere)).toMatchObject({ input_limit: null, cost_high_usd: null });
  });

  it.each([
    ['larger than is buffered', 300_000, false],
    ['in chunks', 1_000, true],
  ])(
    'is looked for in a body that is streamed by although its path names the model: %s',
    async (_, size, chunked) => {
      const text = { parts: [{ text: 'x'.repeat(size) }] };
      const image = { parts: [{ inlineData: { mimeType: 'image/png', data: '' } }] };
      const config = { generationConfig: { maxOutputTokens: 5, candidateCount: 2 } };
      const body = { ...config, contents: [text] };
      const length = JSON.stringify(body).length;
      expect(await call(GEMINI, noUsage, body, 'POST', chunked)).toMatchObject({
        usage_final: false,
        input_limit: String(length),
        output_limit: '10',
        extra_usage: null,
        cost_high_usd: ((length + 100) / 1e6 + 1e-9).toFixed(9),
      });
      const unbounded = { input_limit: null, output_limit: '10', cost_high_usd: null };
      const withImage = { ...config, contents: [text, image] };
      expect(await call(GEMINI, noUsage, withImage, 'POST', chunked)).toMatchObject(unbounded);
      const tools = [{ googleSearch: {} }];
      expect(await call(GEMINI, noUsage, { ...body, tools }, 'POST', chunked)).toMatchObject({
        ...unbounded,
        extra_usage: { uncounted_tools: 1 },
      });
    },
  );

  it('of a call whose usage is final is left out', async () => {
    const usage = { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 };
    const row = await call(CHAT, whole({ choices: [], usage }, JSON_TYPE), {
      ...{ model: 'priced', web_search_options: {} },
    });
    expect(row).toMatchObject({ usage_final: true, cost_usd: '0.000030000', extra_usage: null });
  });

  async function unbounded(): Promise<number> {
    const { data } = await postern.admin<{ data: { unbounded_calls: number }[] }>('GET', '/usage');
    return data[0]?.unbounded_calls ?? 0;
  }
});

it('has no bounds where there was nothing to bill', async () => {
  const error = { error: { type: 'invalid_request_error' } };
  const nothing = { usage_final: null, cost_usd: null, cost_low_usd: null, cost_high_usd: null };
  expect(await call('/v1/chat/completions', whole(error, JSON_TYPE, 400))).toMatchObject(nothing);
  expect(await call('/v1/models', whole({ data: [] }, JSON_TYPE), {}, 'GET')).toMatchObject(nothing);
  expect(await call('/v1/messages/count_tokens', whole({ input_tokens: 1 }, JSON_TYPE))).toMatchObject(
    nothing,
  );
  // The provider may have worked on these.
  for (const status of [408, 504, 524])
    expect(await call('/v1/chat/completions', whole(error, JSON_TYPE, status))).toMatchObject({
      usage_final: false,
    });
});

never('fills in bounds and never a cost, once a model has a price', async () => {
  const row = await call(
    '/v1/messages',
    cutAfter({
      type: 'message_start',
      message: { model: 'late', usage: { input_tokens: 1_000, output_tokens: 1 } },
    }),
    { model: 'late', max_tokens: 50 },
  );
  expect(row).toMatchObject({ usage_final: false, cost_low_usd: null, cost_high_usd: null });
  await postern.admin('POST', '/prices', { catalog: 'default', model: 'late', input: '1', output: '10' });
  const from = new Date(Date.now() - 3_600_000).toISOString();
  await postern.admin('POST', '/prices/reprice', { from, to: new Date().toISOString(), model: 'late' });
  expect(await postern.row(row.id)).toMatchObject({
    cost_usd: null,
    cost_low_usd: '0.001000000',
    cost_high_usd: '0.001500001',
    price_id: null,
  });
});

it('lists them', async () => {
  type Page = { data: { usage_final: boolean | null; cost_usd: string | null }[] };
  const { data } = await postern.admin<Page>('GET', '/requests?usage_final=false&limit=500');
  expect(data.length).toBeGreaterThan(3);
  expect(data.filter((row) => row.usage_final !== false || row.cost_usd !== null)).toEqual([]);
  const others = await postern.admin<Page>('GET', '/requests?usage_final=true&limit=500');
  expect(others.data.map((row) => row.usage_final)).toContain(true);
  expect(others.data.map((row) => row.usage_final)).not.toContain(false);
});

it('counts them by outcome', async () => {
  await eventually(async () => {
    const scrape = await Scrape.of(postern.url);
    return scrape.sum('postern_unknown_calls_total', { reason: 'truncated' }) >= 2;
  });
});

/** Of the streams, those whose cost is what their tokens cost. */
const STREAMS: readonly RecordedAnswer[] = [...ANSWERS, ...FORMATS].filter(
  ({ usage, contentType, headers }) =>
    !contentType.startsWith(JSON_TYPE) &&
    headers === undefined &&
    usage.promptTokens !== null &&
    usage.extra === null &&
    usage.reportedCost === null,
);
const CALLS = process.env.POSTERN_TEST_FULL === '1' ? 10_000 : 300;
const AT_ONCE = 20;

it(`finds what the provider bills between the sums, after ${CALLS} cuts at random`, async () => {
  expect(STREAMS.length).toBeGreaterThan(10);
  await postern.admin('POST', '/prices', { catalog: 'default', model: '*', input: '1', output: '10' });
  const bills = new Map<string, { bill: number; name: string; cut: number; length: number }>();
  // As long as the longest input, in tokens.
  const padding = 'x'.repeat(Math.max(...STREAMS.map(({ usage }) => usage.promptTokens!)));
  const one = async (n: number) => {
    const { name, endpoint, contentType, body, usage } = STREAMS[n % STREAMS.length]!;
    const bytes = Buffer.from(body as string);
    const cut = Math.random() < 0.2 ? bytes.length : 1 + Math.floor(Math.random() * bytes.length);
    const id = await send(
      endpoint,
      { contentType, body: bytes, cut },
      { model: usage.model ?? 'm', padding },
    );
    bills.set(id, {
      bill: usage.promptTokens! + 10 * usage.completionTokens!,
      name,
      cut,
      length: bytes.length,
    });
  };
  for (let n = 0; n < CALLS; n += AT_ONCE)
    await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => one(n + i)));
  type Row = {
    id: string;
    final: boolean | null;
    cost: number | null;
    low: number | null;
    high: number | null;
  };
  const rows = await eventually(async () => {
    const found = await postern.database.query<Row>(
      `SELECT id, usage_final AS final, cost_usd::float8 * 1e6 AS cost, cost_low_usd::float8 * 1e6 AS low, cost_high_usd::float8 * 1e6 AS high
       FROM request_log WHERE id = ANY($1)`,
      [[...bills.keys()]],
    );
    return found.length === bills.size && found;
  });
  const wrong = rows.filter(({ id, final, cost, low, high }) => {
    const { bill } = bills.get(id)!;
    if (final === true) return cost === null || Math.abs(cost - bill) > 1e-6 || low !== null || high !== null;
    return (
      final !== false || cost !== null || low === null || high === null || low > bill + 1e-6 || high < bill
    );
  });
  expect(wrong.slice(0, 5).map((row) => ({ ...row, ...bills.get(row.id) }))).toEqual([]);
  expect(rows.filter(({ final }) => final).length).toBeGreaterThan(CALLS / 20);
  expect(rows.filter(({ final }) => final === false).length).toBeGreaterThan(CALLS / 4);
}, 600_000);
