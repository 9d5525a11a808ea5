import { request as httpRequest } from 'node:http';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { RawProvider } from '../support/raw-provider.js';
import { type Call, reject, type Rejected, type Sdk } from './rejections.js';

let provider: RawProvider;
let gateway: TestGateway;
let boundKey: string;

beforeAll(async () => {
  provider = await RawProvider.start(() => {});
  gateway = await startTestGateway({ PROVIDER_URL: provider.url, MAX_BODY_BYTES: '200000' });
  await gateway.storeProviders('groq', 'mistral');
  boundKey = await gateway.createKey({ providers: ['groq', 'mistral'] });
});
afterAll(async () => {
  expect(provider.connections).toBe(0);
  expect(await gateway.rowCount()).toBe(0);
  await gateway.stop();
  await provider.stop();
});

/** fetch rejects to send TRACE; the SDKs take any fetch. */
const tracing: typeof fetch = (input) =>
  new Promise((resolve, reject) => {
    const sent = httpRequest(input as string, { method: 'TRACE', headers: { authorization: 'Bearer x' } });
    sent.once('response', (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.once('end', () =>
        resolve(
          new Response(Buffer.concat(chunks), {
            status: incoming.statusCode!,
            headers: incoming.headers as Record<string, string>,
          }),
        ),
      );
    });
    sent.once('error', reject).end();
  });

interface GatewayError {
  code: string;
  status: number;
  openai: new (...args: never[]) => Error;
  anthropic: new (...args: never[]) => Error;
  anthropicType: string;
  /** What provokes it; the rest is a good call. */
  call: (sdk: Sdk) => Partial<Call>;
}

const REFUSALS: GatewayError[] = [
  {
    code: 'invalid_api_key',
    status: 401,
    openai: OpenAI.AuthenticationError,
    anthropic: Anthropic.AuthenticationError,
    anthropicType: 'authentication_error',
    call: () => ({ key: `${gateway.key.slice(0, -1)}?` }),
  },
  {
    code: 'endpoint_not_allowed',
    status: 403,
    openai: OpenAI.PermissionDeniedError,
    anthropic: Anthropic.PermissionDeniedError,
    anthropicType: 'permission_error',
    call: (sdk) => ({ method: 'get', path: sdk === 'openai' ? '/v1/files' : '/v1/messages/batches' }),
  },
  {
    code: 'provider_not_allowed',
    status: 403,
    openai: OpenAI.PermissionDeniedError,
    anthropic: Anthropic.PermissionDeniedError,
    anthropicType: 'permission_error',
    call: () => ({ key: boundKey }),
  },
  {
    code: 'provider_not_found',
    status: 404,
    openai: OpenAI.NotFoundError,
    anthropic: Anthropic.NotFoundError,
    anthropicType: 'not_found_error',
    call: () => ({ url: `${gateway.url}/p/nope` }),
  },
  {
    code: 'invalid_path',
    status: 400,
    openai: OpenAI.BadRequestError,
    anthropic: Anthropic.BadRequestError,
    anthropicType: 'invalid_request_error',
    call: (sdk) => ({ path: sdk === 'openai' ? '/v1/models/..%2fx' : '/v1/messages/..%2fx' }),
  },
  {
    code: 'credential_in_query',
    status: 400,
    openai: OpenAI.BadRequestError,
    anthropic: Anthropic.BadRequestError,
    anthropicType: 'invalid_request_error',
    call: () => ({ query: { access_token: gateway.key } }),
  },
  {
    code: 'invalid_request',
    status: 400,
    openai: OpenAI.BadRequestError,
    anthropic: Anthropic.BadRequestError,
    anthropicType: 'invalid_request_error',
    call: () => ({ headers: { authorization: null, 'x-api-key': gateway.key, 'api-key': 'another' } }),
  },
  {
    code: 'request_too_large',
    status: 413,
    openai: OpenAI.APIError,
    anthropic: Anthropic.APIError,
    anthropicType: 'request_too_large',
    call: () => ({ body: { prompt: 'x'.repeat(300_000) } }),
  },
  {
    code: 'method_not_allowed',
    status: 405,
    openai: OpenAI.APIError,
    anthropic: Anthropic.APIError,
    anthropicType: 'invalid_request_error',
    call: () => ({ method: 'trace', fetch: tracing }),
  },
];

/** The headers of contract, and nothing in the sentence that only the inside should know. */
function expectOurs({ error, attempts }: Rejected, code: string): void {
  expect(error.headers.get('x-gateway-error')).toBe(code);
  expect(error.headers.get('x-gateway-request-id')).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  expect(error.headers.get('content-type')).toBe('application/json');
  expect(error.message).not.toContain(gateway.key);
  // No provider has seen this request: both SDKs show the gateway's own ID, each from a header of its own.
  expect(error.requestID).toBe(error.headers.get('x-gateway-request-id'));
  expect(error.headers.get('x-should-retry')).toBe('false');
  expect(attempts).toBe(1);
}

it.each(REFUSALS)('$code: the OpenAI SDK understands it and never retries', async (rejection) => {
  const { code, status, call } = rejection;
  const rejected = await reject('openai', { url: gateway.url, key: gateway.key, ...call('openai') });
  expect(rejected.error).toBeInstanceOf(rejection.openai);
  expect(rejected.error).toMatchObject({ status, code, param: null, type: expect.any(String) as string });
  expect(rejected.error.error).toEqual({
    message: expect.any(String) as string,
    type: rejected.error.type,
    param: null,
    code,
  });
  expectOurs(rejected, code);
});

it.each(REFUSALS)('$code: the Anthropic SDK understands it and never retries', async (rejection) => {
  const { code, status, call } = rejection;
  const rejected = await reject('anthropic', { url: gateway.url, key: gateway.key, ...call('anthropic') });
  expect(rejected.error).toBeInstanceOf(rejection.anthropic);
  expect(rejected.error).toMatchObject({ status, type: rejection.anthropicType });
  expect(rejected.error.error).toEqual({
    type: 'error',
    error: { type: rejection.anthropicType, message: expect.any(String) as string },
  });
  expectOurs(rejected, code);
});

describe('where the endpoint is unknown, the OpenAI shape, which both SDKs turn into the right class', () => {
  it('not_found', async () => {
    const call = { url: `${gateway.url}/v0`, key: gateway.key };
    const openai = await reject('openai', call);
    expect(openai.error).toBeInstanceOf(OpenAI.NotFoundError);
    expectOurs(openai, 'not_found');
    const anthropic = await reject('anthropic', call);
    expect(anthropic.error).toBeInstanceOf(Anthropic.NotFoundError);
    expectOurs(anthropic, 'not_found');
  });

  it('headers_too_large', async () => {
    const call = { url: gateway.url, key: gateway.key, headers: { 'x-long': 'x'.repeat(70_000) } };
    const openai = await reject('openai', call);
    expect(openai.error).toMatchObject({ status: 431, code: 'headers_too_large' });
    expectOurs(openai, 'headers_too_large');
    const anthropic = await reject('anthropic', call);
    expect(anthropic.error).toBeInstanceOf(Anthropic.RequestHeaderFieldsTooLargeError);
    expectOurs(anthropic, 'headers_too_large');
  });
});

it('tells an SDK that a body is too large even while it is still sending a very large one', async () => {
  const call = { url: gateway.url, key: gateway.key, body: { prompt: 'x'.repeat(60_000_000) } };
  for (const sdk of ['openai', 'anthropic'] as const) {
    const rejected = await reject(sdk, call);
    expect(rejected.error).toMatchObject({ status: 413 });
    expectOurs(rejected, 'request_too_large');
  }
});
