import { RawClient, request } from '../support/raw-client.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway.stop());

async function call(line: string, headers: string[] = []) {
  const client = await RawClient.connect(gateway.port);
  client.send(request(line, [`Authorization: Bearer ${gateway.key}`, ...headers], '{}'));
  const reply = await client.answer();
  client.destroy();
  return reply;
}

it('answers 503 in the OpenAI shape and leaves no row', async () => {
  const reply = await call('POST /v1/chat/completions');
  expect(reply.status).toBe(503);
  expect(reply.header('x-gateway-error')).toBe('no_provider_configured');
  expect(reply.header('content-type')).toBe('application/json');
  expect(Number(reply.header('retry-after'))).toBeGreaterThan(0);
  expect(JSON.parse(reply.body.toString())).toEqual({
    error: {
      message: expect.any(String) as string,
      type: 'api_error',
      param: null,
      code: 'no_provider_configured',
    },
  });
  expect(await gateway.rowCount()).toBe(0);
});

it('answers in the Anthropic shape on its endpoint', async () => {
  for (const line of ['POST /v1/messages', 'POST /p/default/v1/messages?beta=true']) {
    const reply = await call(line);
    expect(JSON.parse(reply.body.toString())).toEqual({
      type: 'error',
      error: { type: expect.any(String) as string, message: expect.any(String) as string },
    });
  }
});

it('does not know a provider nobody configured', async () => {
  const reply = await call('POST /p/groq/v1/chat/completions');
  expect([reply.status, reply.header('x-gateway-error')]).toEqual([404, 'provider_not_found']);
});

it.each([
  'POST /v1',
  'POST /V1/chat/completions',
  'GET /',
  'GET /call',
  'POST /chat/completions',
  'GET /p/default',
])('has nothing at %s', async (line) => {
  const reply = await call(line);
  expect([reply.status, reply.header('x-gateway-error')]).toEqual([404, 'not_found']);
});

it.each(['POST /v1/files', 'GET /v1/chat/completions', 'DELETE /v1/models/x', 'POST /v1/chat/completions/'])(
  'does not let an inference key use %s',
  async (line) => {
    const reply = await call(line);
    expect([reply.status, reply.header('x-gateway-error')]).toEqual([403, 'endpoint_not_allowed']);
  },
);

it('does not let a POST pose as another method', async () => {
  const reply = await call('POST /v1/chat/completions', ['X-HTTP-Method-Override: DELETE']);
  expect([reply.status, reply.header('x-gateway-error')]).toEqual([403, 'endpoint_not_allowed']);
});
