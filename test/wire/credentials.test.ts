import { never } from '../support/never.js';
import { RawClient, request } from '../support/raw-client.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { eventually } from '../support/eventually.js';
import { PROVIDER_KEY, startTestGateway, type TestGateway } from '../support/gateway.js';

let gateway: TestGateway;
let provider: RawProvider;

beforeAll(async () => {
  provider = await RawProvider.start(async (req) => {
    await req.body;
    // A careless provider tells the secret back in headers.
    req.socket.write(
      answer(
        '200 OK',
        [`X-Echo: ${PROVIDER_KEY}`, `X-${PROVIDER_KEY}: 1`, 'Set-Cookie: a=b', 'X-Fine: 1'],
        'ok',
      ),
    );
  });
  gateway = await startTestGateway({ PROVIDER_URL: provider.url });
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});

async function call(headers: string[]) {
  const client = await RawClient.connect(gateway.port);
  client.send(request('POST /v1/chat/completions', headers, '{}'));
  const reply = await client.answer();
  client.destroy();
  return reply;
}

never.each([
  'Authorization: Bearer KEY',
  'authorization: bearer KEY',
  'x-api-key: KEY',
  'api-key: KEY',
  'X-Goog-Api-Key: KEY',
])('swaps the key sent as %s for the provider secret', async (header) => {
  const reply = await call([header.replace('KEY', gateway.key), `X-Copy: key=${gateway.key};`, 'X-Fine: 1']);
  expect(reply.status).toBe(200);
  const { head, headers } = provider.requests.at(-1)!;
  expect(head).not.toContain(gateway.key);
  expect(
    headers.filter(([name]) => /^(authorization|x-api-key|api-key|x-goog-api-key)$/i.test(name)),
  ).toEqual([['Authorization', `Bearer ${PROVIDER_KEY}`]]);
  expect(headers).toContainEqual(['X-Fine', '1']);
  expect(headers.some(([name]) => name === 'X-Copy')).toBe(false);
});

never(
  'passes on no key of another caller, and nothing that reads like a header that is dropped',
  async () => {
    const other = await gateway.createKey();
    const reply = await call([
      `Authorization: Bearer ${gateway.key}`,
      `X-Other: key=${other};`,
      `X-${other}: 1`,
      'X_Forwarded_For: 192.0.2.1',
      `X_Api_Key: secret`,
      'Content_Length: 9',
      'Transfer_Encoding: chunked',
      'Transfer-Encoding!: chunked',
      'X_Fine: 1',
    ]);
    expect(reply.status).toBe(200);
    const { head, headers } = provider.requests.at(-1)!;
    expect(head).not.toContain('ptn_');
    expect(headers.map(([name]) => name.toLowerCase()).sort()).toEqual([
      'authorization',
      'connection',
      'content-length',
      'host',
      'x_fine',
    ]);
  },
);

never.each([
  'X-Original-URL: /v1/files',
  'X-Rewrite-URL: /v1/files',
  'X-Original-URI: /v1/files',
  'X.Method.Override: DELETE',
  'X-Envoy-Original-Path: /v1/files',
])('rejects %s of a key for inference with 403', async (header) => {
  const seen = provider.requests.length;
  const reply = await call([`Authorization: Bearer ${gateway.key}`, header]);
  expect([reply.status, reply.header('x-gateway-error')]).toEqual([403, 'endpoint_not_allowed']);
  expect(provider.requests.length).toBe(seen);
});

never.each([
  'POST /v1/chat/completions?_method=DELETE',
  'POST /v1/chat/completions?%255fmethod=DELETE',
  'GET /v1/models/%25252e%25252e/files',
  'GET /v1/models/..%20/files',
  'GET /p/default/v1/models/%c0%ae%c0%ae/files',
])('rejects %s of a key for inference with 403', async (line) => {
  const client = await RawClient.connect(gateway.port);
  const seen = provider.requests.length;
  client.send(request(line, [`Authorization: Bearer ${gateway.key}`]));
  const reply = await client.answer();
  client.destroy();
  expect([reply.status, reply.header('x-gateway-error')]).toEqual([403, 'endpoint_not_allowed']);
  expect(provider.requests.length).toBe(seen);
});

never('never shows the provider secret or its cookies to the client', async () => {
  const reply = await call([`Authorization: Bearer ${gateway.key}`]);
  expect(reply.head).not.toContain(PROVIDER_KEY);
  expect(reply.header('set-cookie')).toBeUndefined();
  expect(reply.header('x-fine')).toBe('1');
});

never.each([
  ['no credential', []],
  ['another scheme', ['Authorization: Basic KEY']],
  ['two spaces', ['Authorization: Bearer  KEY']],
  ['a tail', ['Authorization: Bearer KEY x']],
  ['a malformed Authorization beside a good key', ['Authorization: Basic abc', 'x-api-key: KEY']],
  ['an empty Authorization beside a good key', ['Authorization:', 'x-api-key: KEY']],
  ['a key nobody issued', ['Authorization: Bearer ptn_000000000000000000000000000000000000aa']],
  ['SQL', ["Authorization: Bearer '; DROP TABLE team; --"]],
])('rejects %s with 401 and forwards nothing', async (_, headers) => {
  const seen = provider.requests.length;
  // The rows of earlier calls are written behind; wait for them before counting.
  await eventually(async () => (await gateway.rowCount()) === seen);
  const reply = await call(headers.map((header) => header.replace('KEY', gateway.key)));
  expect(reply.status).toBe(401);
  expect(reply.header('x-gateway-error')).toBe('invalid_api_key');
  expect(reply.header('www-authenticate')).toBe('Bearer');
  expect(reply.header('x-should-retry')).toBe('false');
  expect(reply.header('x-gateway-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  expect(JSON.parse(reply.body.toString())).toEqual({
    error: {
      message: expect.any(String) as string,
      type: 'authentication_error',
      param: null,
      code: 'invalid_api_key',
    },
  });
  expect(provider.requests.length).toBe(seen);
  expect(await gateway.rowCount()).toBe(seen);
});

it.each([
  [['Authorization: Bearer KEY', 'Authorization: Bearer KEY']],
  [['x-api-key: KEY', 'x-api-key: KEY']],
  [['x-api-key: KEY', 'api-key: other']],
])('rejects %j with 400', async (headers) => {
  const reply = await call(headers.map((header) => header.replace('KEY', gateway.key)));
  expect(reply.status).toBe(400);
  expect(reply.header('x-gateway-error')).toBe('invalid_request');
});
