import zlib from 'node:zlib';
import { modelFromPath } from '../../src/bodies/path-model.js';
import { isStreamed } from '../../src/bodies/usage/framing/stream-framing.js';
import { never } from '../support/never.js';
import { request } from '../support/raw-client.js';
import { answer, chunk, LAST_CHUNK } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';
import { FORMATS } from '../bodies/usage/recorded-formats.js';
import { ANSWERS } from '../bodies/usage/recorded-responses.js';

let wire: Wire;
beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

const ENCODINGS: [string | null, (body: Buffer) => Buffer][] = [
  [null, (body) => body],
  ['gzip', zlib.gzipSync],
  ['br', zlib.brotliCompressSync],
];

/** Pieces of sizes that differ from body to body, but not from run to run. */
function pieces(body: Buffer, seed: number): Buffer[] {
  const all: Buffer[] = [];
  let state = seed + 1;
  for (let at = 0; at < body.length;) {
    state = (state * 48_271) % 2_147_483_647;
    const size = 1 + (state % 90);
    all.push(body.subarray(at, at + size));
    at += size;
  }
  return all;
}

const formats = [...ANSWERS, ...FORMATS].map((format, i) => ({ ...format, i }));

describe('the row of a call', () => {
  never.each(formats)('has the counts of an $name, and the client its bytes', async (format) => {
    const { endpoint, contentType, headers = [], usage, i } = format;
    const [encoding, encode] = ENCODINGS[i % ENCODINGS.length]!;
    const body = encode(Buffer.from(format.body as string));
    const lines = [`Content-Type: ${contentType}`];
    if (encoding !== null) lines.push(`Content-Encoding: ${encoding}`);
    for (let at = 0; at < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`);
    for (const chunked of [false, true]) {
      wire.provider.script = async ({ body: received, socket }) => {
        await received;
        if (!chunked) {
          socket.write(answer('200 OK', lines, body));
          return;
        }
        socket.write(`HTTP/1.1 200 OK\r\n${lines.join('\r\n')}\r\nTransfer-Encoding: chunked\r\n\r\n`);
        for (const piece of pieces(body, i)) socket.write(chunk(piece));
        socket.write(LAST_CHUNK);
      };
      const reply = await wire.call(`POST /p/default${endpoint}`, [], '{}');
      expect(reply.body.equals(body)).toBe(true);
      expect(await wire.gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({
        outcome: 'completed',
        streamed: isStreamed(contentType),
        model: modelFromPath(endpoint) ?? usage.model,
        prompt_tokens: usage.promptTokens,
        cached_tokens: usage.cachedTokens,
        cache_write_tokens: usage.cacheWriteTokens,
        completion_tokens: usage.completionTokens,
        reasoning_tokens: usage.reasoningTokens,
        extra_usage: usage.extra,
      });
    }
  });
});

describe('the model of a request', () => {
  const long = 'A'.repeat(300_000);
  const bodies: [string, string][] = [
    ['before 300 KB', `{"model":"gpt-4o","image":"${long}"}`],
    ['behind 300 KB', `{"image":"${long}","model":"gpt-4o"}`],
    ['between 300 KB and 300 KB', `{"image":"${long}","model":"gpt-4o","other":["${long}"]}`],
    ['in a small body', '{"messages":[{"model":"x"}],"model":"gpt-4o"}'],
  ];

  it.each(
    bodies.flatMap(([where, body]) => [
      [where, 'with a Content-Length', body],
      [where, 'in chunks', body],
    ]),
  )('is that of the request %s %s, also of one that failed', async (_where, framing, body) => {
    wire.provider.script = async ({ body: received, socket }) => {
      const { bytes } = await received;
      expect(bytes.equals(Buffer.from(body))).toBe(true);
      socket.write(answer('429 Too Many Requests', ['Content-Type: application/json'], '{"error":{}}'));
    };
    const client = await wire.connect();
    if (framing === 'in chunks') {
      client.send(request('POST /v1/chat/completions', [wire.auth, 'Transfer-Encoding: chunked']));
      for (let at = 0; at < body.length; at += 7_001) client.send(chunk(body.slice(at, at + 7_001)));
      client.send(LAST_CHUNK);
    } else {
      client.send(request('POST /v1/chat/completions', [wire.auth], body));
    }
    const reply = await client.answer();
    client.destroy();
    expect(reply.status).toBe(429);
    expect(await wire.gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({
      model: 'gpt-4o',
      status: 429,
      request_bytes: String(body.length),
    });
  });

  it.each([
    ['/model/amazon.nova-lite-v1%3A0/converse', 'amazon.nova-lite-v1:0'],
    ['/model/us.meta.llama/converse-stream', 'us.meta.llama'],
    ['/model/m/invoke', 'm'],
    ['/model/m/invoke-with-response-stream', 'm'],
    ['/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21', 'my-gpt'],
  ])('is that of the path %s, also of one that failed', async (target, model) => {
    wire.provider.script = async ({ body: received, socket }) => {
      await received;
      socket.write(answer('400 Bad Request', ['Content-Type: application/json'], '{}'));
    };
    const reply = await wire.call(`POST /p/default${target}`, [], '{"messages":[]}');
    expect(await wire.gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({ model });
  });
});

describe('an inference key', () => {
  const RESPONSE = { model: 'gpt-5.6', usage: { input_tokens: 12, output_tokens: 3, total_tokens: 15 } };
  const CHAT = { model: 'gpt-4o', usage: { prompt_tokens: 12, completion_tokens: 3, total_tokens: 15 } };
  const CLAUDE = { model: 'claude', usage: { input_tokens: 12, output_tokens: 3 } };
  const GEMINI = { usageMetadata: { promptTokenCount: 12, candidatesTokenCount: 3, totalTokenCount: 15 } };
  const VERTEX = '/v1/projects/p/locations/l/publishers';

  never.each([
    ['/v1/responses/compact', 'asked', RESPONSE],
    ['/p/default/v1/responses/compact', 'asked', RESPONSE],
    ['/p/default/openai/v1/responses/compact', 'asked', RESPONSE],
    ['/p/default/model/us.anthropic.claude-v1%3A0/invoke', 'us.anthropic.claude-v1:0', CLAUDE],
    ['/p/default/model/m/converse', 'm', { usage: { inputTokens: 12, outputTokens: 3, totalTokens: 15 } }],
    [`${VERTEX}/google/models/gemini-2.5-pro:generateContent`, 'gemini-2.5-pro', GEMINI],
    [
      `/p/default${VERTEX}/anthropic/models/claude-opus-4@20250514:rawPredict`,
      'claude-opus-4@20250514',
      CLAUDE,
    ],
    ['/p/default/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21', 'my-gpt', CHAT],
    // As AzureOpenAI and google-genai send them; the last one in the express mode of Vertex AI.
    ['/p/default/openai/responses?api-version=2025-04-01-preview', 'asked', RESPONSE],
    ['/v1/models/gemini-2.5-pro:generateContent', 'gemini-2.5-pro', GEMINI],
    ['/p/default/v1alpha/models/gemini-2.5-pro:generateContent', 'gemini-2.5-pro', GEMINI],
    ['/p/default/v1beta1/publishers/google/models/gemini-2.5-pro:generateContent', 'gemini-2.5-pro', GEMINI],
  ])('may POST %s: same bytes, model %s and tokens', async (target, model, response) => {
    // Not as a serializer would write it.
    const body = Buffer.from(
      ` {"input" :[],"x":"\\u00e9\\/"${model === 'asked' ? ', "model":"asked"' : ''}}\n`,
    );
    const reply = Buffer.from(` ${JSON.stringify(response, null, 1)}\r\n`);
    let seen: { line: string; bytes: Buffer } | null = null;
    wire.provider.script = async ({ head, body: received, socket }) => {
      seen = { line: head.split('\r\n')[0]!, bytes: (await received).bytes };
      socket.write(answer('200 OK', ['Content-Type: application/json'], reply));
    };
    const client = await wire.connect();
    client.send(request(`POST ${target}`, [`Authorization: Bearer ${wire.gateway.key}`], body));
    const received = await client.answer();
    client.destroy();
    expect(received.body.equals(reply)).toBe(true);
    expect(seen).toEqual({ line: `POST ${target.replace('/p/default', '')} HTTP/1.1`, bytes: body });
    expect(await wire.gateway.row(received.header('x-gateway-request-id')!)).toMatchObject({
      model,
      prompt_tokens: 12,
      completion_tokens: 3,
    });
  });

  never('may count the tokens of a response, which uses none', async () => {
    wire.provider.script = async ({ body: received, socket }) => {
      await received;
      const counted = '{"object":"response.input_tokens","input_tokens":11}';
      socket.write(answer('200 OK', ['Content-Type: application/json'], counted));
    };
    const client = await wire.connect();
    const auth = `Authorization: Bearer ${wire.gateway.key}`;
    client.send(request('POST /v1/responses/input_tokens', [auth], '{"model":"m","input":"x"}'));
    const reply = await client.answer();
    client.destroy();
    expect(reply.status).toBe(200);
    expect(await wire.gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({
      model: 'm',
      prompt_tokens: null,
      completion_tokens: null,
    });
  });
});
