import { RawClient, request } from '../support/raw-client.js';
import { chunk, RawProvider } from '../support/raw-provider.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';

let gateway: TestGateway;
let provider: RawProvider;

beforeAll(async () => {
  provider = await RawProvider.start(() => {});
  gateway = await startTestGateway({
    PROVIDER_URL: provider.url,
    UPSTREAM_HEADERS_TIMEOUT_MS: '300',
    UPSTREAM_IDLE_TIMEOUT_MS: '400',
  });
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});

async function open(): Promise<RawClient> {
  const client = await RawClient.connect(gateway.port);
  client.send(request('POST /v1/chat/completions', [`Authorization: Bearer ${gateway.key}`], '{}'));
  return client;
}

it.each([
  ['breaks off before its head', '', 'upstream_invalid_response'],
  ['breaks off in its head', 'HTTP/1.1 200 OK\r\nContent-', 'upstream_invalid_response'],
  ['speaks no HTTP', 'SSH-2.0-OpenSSH\r\n\r\n', 'upstream_invalid_response'],
  ['sends a status below 100', 'HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n', 'upstream_invalid_response'],
])('answers 502 when the provider %s', async (_, bytes, code) => {
  provider.script = async (req) => {
    await req.body;
    req.socket.end(bytes);
  };
  const client = await open();
  const reply = await client.answer();
  client.destroy();
  expect([reply.status, reply.header('x-gateway-error')]).toEqual([502, code]);
  const row = await gateway.row(reply.header('x-gateway-request-id')!);
  expect(row).toMatchObject({ outcome: 'upstream_error', status: 502, error_code: code });
});

it('answers 504 when the provider is silent', async () => {
  provider.script = async (req) => {
    await req.closed;
  };
  const client = await open();
  const reply = await client.answer();
  client.destroy();
  expect([reply.status, reply.header('x-gateway-error')]).toEqual([504, 'upstream_timeout']);
  const row = await gateway.row(reply.header('x-gateway-request-id')!);
  expect(row).toMatchObject({ outcome: 'upstream_timeout', status: 504 });
});

it.each([
  ['breaks off', 'Transfer-Encoding: chunked', chunk('half'), true, 'truncated'],
  ['breaks off short of its Content-Length', 'Content-Length: 9', 'half', true, 'truncated'],
  ['falls silent', 'Transfer-Encoding: chunked', chunk('half'), false, 'upstream_timeout'],
])(
  'breaks the connection to the client when the provider %s mid-body',
  async (_, framing, bytes, end, outcome) => {
    provider.script = async (req) => {
      await req.body;
      req.socket.write(`HTTP/1.1 200 OK\r\n${framing}\r\n\r\n`);
      req.socket.write(bytes);
      if (end) req.socket.end();
      await req.closed;
    };
    const client = await open();
    const head = await client.head();
    expect(head.status).toBe(200);
    await client.closed;
    // The half that came, and nothing after it: no last chunk, no appended error.
    expect(client.reader.rest.toString()).toBe(bytes.toString());
    const row = await gateway.row(head.header('x-gateway-request-id')!);
    expect(row).toMatchObject({ outcome, status: 200, response_bytes: '4' });
  },
);

it('answers 502 upstream_unreachable when nobody listens', async () => {
  const gone = await RawProvider.start(() => {});
  const unreachable = await startTestGateway({ PROVIDER_URL: gone.url });
  await gone.stop();
  const client = await RawClient.connect(unreachable.port);
  client.send(request('POST /v1/chat/completions', [`Authorization: Bearer ${unreachable.key}`], '{}'));
  const reply = await client.answer();
  client.destroy();
  expect([reply.status, reply.header('x-gateway-error')]).toEqual([502, 'upstream_unreachable']);
  expect(reply.body.toString()).not.toContain('127.0.0.1');
  const row = await unreachable.row(reply.header('x-gateway-request-id')!);
  expect(row).toMatchObject({ outcome: 'upstream_error', status: 502, error_code: 'upstream_unreachable' });
  await unreachable.stop();
});
