import { gzipSync } from 'node:zlib';
import { RawClient, request } from '../support/raw-client.js';
import { answer, chunk, LAST_CHUNK, RawProvider } from '../support/raw-provider.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';

let gateway: TestGateway;
let provider: RawProvider;

beforeAll(async () => {
  provider = await RawProvider.start(() => {});
  gateway = await startTestGateway({ PROVIDER_URL: provider.url });
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});

const USAGE = {
  prompt_tokens: 11,
  completion_tokens: 7,
  prompt_tokens_details: { cached_tokens: 3 },
  completion_tokens_details: { reasoning_tokens: 2 },
};
const FIGURES = { prompt_tokens: 11, completion_tokens: 7, cached_tokens: 3, reasoning_tokens: 2 };

async function rowOf(path: string, body: string): Promise<Record<string, unknown>> {
  const client = await RawClient.connect(gateway.port);
  client.send(request(`POST ${path}`, [`Authorization: Bearer ${gateway.key}`], body));
  const reply = await client.answer();
  client.destroy();
  return gateway.row(reply.header('x-gateway-request-id')!);
}

it.each([
  ['plain', [], (bytes: Buffer) => bytes],
  ['gzip', ['Content-Encoding: gzip'], (bytes: Buffer) => gzipSync(bytes)],
])('reads the figures of a JSON answer, %s, and the model of the request', async (_, headers, encode) => {
  provider.script = async (req) => {
    await req.body;
    const body = encode(Buffer.from(JSON.stringify({ model: 'gpt-4o-2024-08-06', usage: USAGE })));
    req.socket.write(answer('200 OK', ['Content-Type: application/json', ...headers], body));
  };
  const row = await rowOf('/v1/chat/completions', '{"messages":[{"model":"no"}],"model":"gpt-4o"}');
  expect(row).toMatchObject({ ...FIGURES, model: 'gpt-4o', streamed: false });
});

it('reads the figures at the end of a stream, and the model of the answer where the request names none', async () => {
  provider.script = async (req) => {
    await req.body;
    req.socket.write(
      'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n',
    );
    req.socket.write(chunk('data: {"model":"gpt-4o-mini","choices":[{"delta":{"content":"hi"}}]}\n\n'));
    req.socket.write(
      chunk(`data: {"model":"gpt-4o-mini","choices":[],"usage":${JSON.stringify(USAGE)}}\n\n`),
    );
    req.socket.write(chunk('data: [DONE]\n\n'));
    req.socket.write(LAST_CHUNK);
  };
  const row = await rowOf('/v1/chat/completions', '{"stream":true}');
  expect(row).toMatchObject({ ...FIGURES, model: 'gpt-4o-mini', streamed: true });
});

it('leaves figures null where the provider gives none', async () => {
  provider.script = async (req) => {
    await req.body;
    req.socket.write(
      answer('200 OK', ['Content-Type: application/json'], '{"choices":[{"text":"four words of text"}]}'),
    );
  };
  const row = await rowOf('/v1/chat/completions', 'not json');
  expect(row).toMatchObject({
    model: null,
    prompt_tokens: null,
    completion_tokens: null,
    cached_tokens: null,
    reasoning_tokens: null,
  });
});
