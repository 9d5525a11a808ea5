import Groq from 'groq-sdk';
import OpenAI from 'openai';
import { PROVIDER_KEY, startTestGateway, type TestGateway } from '../support/gateway.js';
import { RawClient, request } from '../support/raw-client.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { FORMATS } from '../bodies/usage/recorded-formats.js';
import { collect } from './both-ways.js';

let provider: RawProvider;
let gateway: TestGateway;

beforeAll(async () => {
  provider = await RawProvider.start(() => {});
  gateway = await startTestGateway();
  // As the preset has it, and as somebody else may.
  for (const [name, path] of [
    ['groq', '/openai'],
    ['bare', ''],
    ['cohere', ''],
  ] as const) {
    await gateway.admin('POST', '/providers', { name, url: provider.url + path, secret: PROVIDER_KEY });
  }
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});

/** Answers each request like the recorded response of this name. */
function respondLike(name: string): (typeof FORMATS)[number] {
  const format = FORMATS.find((one) => one.name === name)!;
  provider.script = async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', [`Content-Type: ${format.contentType}`], format.body));
  };
  return format;
}

/** The request line that the provider got last, and the secret in it. */
function received(): { line: string; authorization: string | undefined } {
  const { head, headers } = provider.requests.at(-1)!;
  const [, authorization] = headers.find(([name]) => name.toLowerCase() === 'authorization') ?? [];
  return { line: head.split('\r\n')[0]!, authorization };
}

const GOT = (line: string) => ({ line: `${line} HTTP/1.1`, authorization: `Bearer ${PROVIDER_KEY}` });
const messages = [{ role: 'user' as const, content: 'hello' }];
const model = 'openai/gpt-oss-20b';

describe.each(['groq', 'bare'])('groq-sdk with a key for inference, at the provider %s', (name) => {
  let headers: Headers;
  const client = () =>
    new Groq({
      baseURL: `${gateway.url}/p/${name}`,
      apiKey: gateway.key,
      maxRetries: 0,
      fetch: async (input, init) => {
        const response = await fetch(input, init);
        ({ headers } = response);
        return response;
      },
    });
  const row = () => gateway.row(headers.get('x-gateway-request-id')!);

  it('completes a chat', async () => {
    const { usage } = respondLike('Groq completion');
    const completion = await client().chat.completions.create({ model, messages });
    expect(completion.usage?.prompt_tokens).toBe(78);
    expect(received()).toEqual(GOT('POST /openai/v1/chat/completions'));
    expect(await row()).toMatchObject({
      path: `/p/${name}/openai/v1/chat/completions`,
      model,
      prompt_tokens: usage.promptTokens,
      completion_tokens: usage.completionTokens,
    });
  });

  it('streams a chat', async () => {
    respondLike('Groq stream with the usage in x_groq only');
    const events = await collect(await client().chat.completions.create({ model, messages, stream: true }));
    expect(events).toHaveLength(3);
    expect(await row()).toMatchObject({ streamed: true, prompt_tokens: 42, completion_tokens: 20 });
  });

  it('lists models and makes embeddings', async () => {
    respondLike('Voyage embeddings');
    await client().models.list();
    expect(received()).toEqual(GOT('GET /openai/v1/models'));
    await client().embeddings.create({ model, input: 'a' });
    expect(received()).toEqual(GOT('POST /openai/v1/embeddings'));
  });

  it('does not reach what teams would share', async () => {
    const count = provider.requests.length;
    await expect(client().files.list()).rejects.toMatchObject({ status: 403 });
    await expect(client().batches.list()).rejects.toMatchObject({ status: 403 });
    expect(provider.requests).toHaveLength(count);
  });
});

it('the OpenAI SDK reaches the same endpoint of the preset without the path', async () => {
  respondLike('Groq completion');
  const client = new OpenAI({ baseURL: `${gateway.url}/p/groq/v1`, apiKey: gateway.key, maxRetries: 0 });
  await client.chat.completions.create({ model, messages });
  expect(received()).toEqual(GOT('POST /openai/v1/chat/completions'));
});

it.each([
  ['/openai/v1/models?a=%2F', '/openai/v1/models?a=%2F'],
  ['/openaix/v1/models', '/openai/openaix/v1/models'],
  ['/openai', '/openai/openai'],
  ['/v1/models', '/openai/v1/models'],
  ['/openai/openai/v1/models', '/openai/openai/v1/models'],
])('%s goes to %s', async (sent, arrived) => {
  respondLike('Groq completion');
  const key = await gateway.createKey({ endpoints: 'all' });
  const response = await fetch(`${gateway.url}/p/groq${sent}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  await response.text();
  expect(received()).toEqual(GOT(`GET ${arrived}`));
});

/*
 * What cohere-ai 8.1.0 sends with `environment: '<gateway>/p/cohere'`. The package itself has 17 MB.
 */
const COHERE_HEADERS = [
  'Accept: */*',
  'Content-Type: application/json',
  'x-fern-language: JavaScript',
  'x-fern-sdk-name: cohere-ai',
  'x-fern-sdk-version: 8.1.0',
  'user-agent: cohere-ai/8.1.0',
  'x-fern-runtime: node',
  'accept-language: *',
  'sec-fetch-mode: cors',
  'accept-encoding: gzip, deflate',
];

describe('the requests of cohere-ai with a key for inference', () => {
  it.each([
    [
      '/v2/chat',
      'Cohere v2 chat',
      '{"model":"command-a-03-2025","messages":[{"role":"user","content":"hello"}],"stream":false}',
    ],
    [
      '/v2/chat',
      'Cohere v2 chat, streamed',
      '{"model":"command-a-03-2025","messages":[{"role":"user","content":"hello"}],"stream":true}',
    ],
    [
      '/v2/embed',
      'Cohere embeddings',
      '{"model":"embed-v4.0","texts":["a"],"input_type":"search_query","embedding_types":["float"]}',
    ],
    [
      '/v2/rerank',
      'Cohere rerank, billed in searches',
      '{"model":"rerank-v3.5","query":"q","documents":["a","b"]}',
    ],
    ['/v1/chat', 'Cohere v1 chat', '{"model":"command-r","message":"hello","stream":false}'],
  ])('reach %s, and get the response: %s', async (endpoint, name, body) => {
    const { usage, body: sent } = respondLike(name);
    const client = await RawClient.connect(gateway.port);
    client.send(
      request(`POST /p/cohere${endpoint}`, [`authorization: Bearer ${gateway.key}`, ...COHERE_HEADERS], body),
    );
    const reply = await client.answer();
    client.destroy();
    expect([reply.status, reply.body.toString()]).toEqual([200, sent.toString()]);
    expect(received()).toEqual(GOT(`POST ${endpoint}`));
    expect((await provider.requests.at(-1)!.body).bytes.toString()).toBe(body);
    expect(await gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({
      model: (JSON.parse(body) as { model: string }).model,
      prompt_tokens: usage.promptTokens,
      completion_tokens: usage.completionTokens,
      extra_usage: usage.extra,
    });
  });
});
