import { METHODS } from 'node:http';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { RawClient, request } from '../support/raw-client.js';
import { Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

describe('rejected targets', () => {
  /** Segments that have led out of a path in similar gateways. Each is tried within paths that would be forwarded. */
  const DOT_SEGMENTS = [
  '..', '.', '%2e%2e', '%2E%2E', '.%2e', '%2e.', '%2e', '%252e%252e', '%252E.', '.%252e', '%25%32%65%25%32%65',
  '..;', '..;x=y', '%2e%2e;', '..%3b', '..%3Bx', '..%253b', '.;', '%2e%3b',
  'x%2f..', '..%2fx', '..%2Fx', 'x%2f..%2fx', '..%5cx', 'x%5c..', '%2e%2e%2f', '%2e%2e%5c', '..%252fx', '..%255cx',
  '%252e%252e%252f', '%2e%252e%2f', 'x%2f.', 'x%5c%2e%2e%2fx', '..%2f..%2f..%2fadmin%2fv1%2fkeys',
  '..%00', '%2e%2e%00x', '.%09.', '%2e%0a%2e', '..%0d', '..%2500',
]; // oxfmt-ignore

  never.each(DOT_SEGMENTS)('rejects the segment %s in every place', async (segment) => {
    for (const target of [
      `/v1/${segment}`,
      `/v1/${segment}/`,
      `/v1/models/${segment}/files`,
      `/v1/${segment}/v1/chat/completions?a=b`,
      `/p/${segment}/v1/models`,
      `/p/default/${segment}/admin`,
      `/p/default/v1/${segment}`,
      `/${segment}/v1/models`,
      `/elsewhere/${segment}/v1/models`,
    ]) {
      const [reply] = await wire.send(request(`GET ${target}`, [wire.auth]));
      wire.expectRejection(reply, 400, 'invalid_path');
      expect(reply!.header('x-should-retry')).toBe('false');
    }
    await wire.expectSound(0);
  });

  never.each([
    ['absolute-form', 'http://provider.test/v1/models'],
    ['absolute-form of this host', 'http://gateway.test/v1/models'],
    ['absolute-form in upper case', 'HTTP://GATEWAY.TEST/v1/models'],
    ['https', 'https://gateway.test/v1/models'],
    ['another scheme', 'file:///etc/passwd'],
    ['authority-form', 'gateway.test:443'],
    ['authority-form with a path', 'gateway.test:443/v1/models'],
    ['*', '*'],
    ['no slash', 'v1/models'],
    ['a query alone', '?/v1/models'],
    ['//', '//v1/models'],
    ['// and a host', '//evil.test/v1/models'],
    ['// and user info', '//user@evil.test/v1/models'],
    ['///', '///v1/models'],
    ['/\\', '/\\evil.test/v1/models'],
    ['\\', '\\\\evil.test/v1/models'],
    ['a backslash', '/v1\\models'],
    ['a backslash and dots', '/v1/models/..\\..\\admin'],
    ['a fragment', '/v1/models#x'],
    ['a fragment in a query', '/v1/models?a=b#x'],
    ['// behind a provider', '/p/default//evil.test/v1/models'],
    ['a tab', '/v1/mod\tels'],
    ['a tab in a query', '/v1/models?a\tb'],
    ['NUL', '/v1/models\0'],
    ['a control byte', '/v1/models\x01'],
    ['DEL', '/v1/models\x7f'],
    ['bytes of UTF-8', '/v1/models/\xc3\xa9'],
    ['bytes of UTF-8 in a query', '/v1/models?q=\xc3\xa9'],
    ['a no-break space', '/v1/models\xa0'],
    ['an encoded NUL', '/v1/models/%00'],
    ['an encoded line break', '/v1/models/x%0d%0aX-Smuggled:%201'],
    ['an encoded DEL', '/v1/models/%7f'],
    ['a control byte encoded twice', '/v1/models/%2500'],
    ['% at the end', '/v1/models/%'],
    ['half an escape', '/v1/models/%4'],
    ['an escape of other letters', '/v1/models/%zz'],
    ['half an escape before a query', '/v1/models/%4?a=b'],
    ['a long escape', '/v1/models/%u002e%u002e/x'],
    ['a malformed escape behind a provider', '/p/default/v1/%g0'],
  ])('rejects %s', async (_, target) => {
    const [reply] = await wire.send(request(`GET ${target}`, [wire.auth]));
    wire.expectRejection(reply, 400, 'invalid_path');
    await wire.expectSound(0);
  });

  it('does not take a space for part of a target', async () => {
    const [reply] = await wire.send(request('GET /v1/models /x', [wire.auth]));
    wire.expectRejection(reply, 400, 'invalid_request');
    await wire.expectSound(0);
  });

  it('has one form of rejection also where the router alone knows that there is nothing', async () => {
    for (const line of ['GET /health/nothing', 'POST /health/live', 'GET /health//admin', 'GET /metrics/x']) {
      const [reply] = await wire.send(request(line, []));
      wire.expectRejection(reply, 404, 'not_found');
    }
    for (const target of ['/admin/v1/teams/%ff', '/admin/v1/providers/%C0%AE/test']) {
      const [reply] = await wire.send(request(`GET ${target}`, []));
      wire.expectRejection(reply, 400, 'invalid_path');
    }
    await wire.expectSound(0);
  });
});

describe('methods', () => {
  it.each(METHODS.filter((method) => !['CONNECT', 'TRACE', 'SOURCE'].includes(method)))(
    'carries %s',
    async (method) => {
      const reply = await wire.call(`${method} /v1/things/1`);
      expect([reply.status, reply.header('x-target')]).toEqual([200, '/v1/things/1']);
      expect(wire.provider.requests.at(-1)!.head.split('\r\n')[0]).toBe(`${method} /v1/things/1 HTTP/1.1`);
      await wire.expectSound(1);
    },
  );

  it.each(['GET', 'DELETE', 'OPTIONS', 'SEARCH'])('carries a %s with a body', async (method) => {
    const reply = await wire.call(`${method} /v1/things`, [], 'a body');
    expect([reply.status, reply.body.toString()]).toEqual([200, 'a body']);
    await wire.expectSound(1);
  });

  // llhttp accepts these protocols beside HTTP, and Node does not say which one a request named.
  it.each([
    ...['DESCRIBE', 'ANNOUNCE', 'SETUP', 'PLAY', 'PAUSE', 'TEARDOWN', 'GET_PARAMETER', 'SET_PARAMETER'].map(
      (method) => `${method} /v1/models RTSP/1.0`,
    ),
    ...['REDIRECT', 'RECORD', 'FLUSH'].map((method) => `${method} /v1/models RTSP/1.1`),
    'SOURCE /v1/models ICE/1.0',
    'SOURCE /v1/models HTTP/1.1',
  ])('rejects %s with 405', async (line) => {
    const [reply] = await wire.send(`${line}\r\nHost: a\r\n${wire.auth}\r\n\r\n`);
    wire.expectRejection(reply, 405, 'method_not_allowed');
    await wire.expectSound(0);
  });

  it('names in Allow what it carries', async () => {
    const [reply] = await wire.send(request('TRACE /v1/models', [wire.auth]));
    const carried = METHODS.filter((method) => !['CONNECT', 'TRACE', 'SOURCE'].includes(method));
    expect(reply!.header('allow')!.split(', ').sort()).toEqual([...carried].sort());
    const [connect] = await wire.send(request('CONNECT a:1', [wire.auth]));
    expect(connect!.header('allow')).toBe(reply!.header('allow'));
    const [other] = await wire.send(request('GET /v1/models', []));
    expect([other!.status, other!.header('allow')]).toEqual([401, undefined]);
  });

  it.each(['/v1/models', '/', '*'])('rejects TRACE %s with 405', async (target) => {
    const [reply] = await wire.send(request(`TRACE ${target}`, [wire.auth]));
    wire.expectRejection(reply, 405, 'method_not_allowed');
    expect(reply!.body.toString()).not.toContain('ptn_');
    await wire.expectSound(0);
  });

  it.each(['provider.test:443', '127.0.0.1:80'])('rejects CONNECT %s with 405 and closes', async (target) => {
    const client = await wire.connect();
    client.send(
      Buffer.concat([request(`CONNECT ${target}`, [wire.auth]), request('GET /v1/models', [wire.auth])]),
    );
    wire.expectRejection(await client.answer(), 405, 'method_not_allowed');
    await client.closed;
    expect(client.reader.rest).toHaveLength(0);
    await wire.expectSound(0);
  });

  it.each(['get', 'Get', 'FOO', 'GETX', 'G\tET', 'G\xe9T', 'GET\0', '"GET"'])(
    'rejects the method %j with 400 and closes',
    async (method) => {
      const client = await wire.connect();
      client.send(request(`${method} /v1/models`, [wire.auth]));
      wire.expectRejection(await client.answer(), 400, 'invalid_request');
      await client.closed;
      await wire.expectSound(0);
    },
  );
});

describe('no provider', () => {
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

  it('adds what the AWS SDKs read on the endpoints of Bedrock', async () => {
    const answered = await call('POST /p/default/model/anthropic.claude-v1%3A0/converse');
    const message = expect.any(String) as string;
    const { error, ...further } = JSON.parse(answered.body.toString()) as { error: { message: string } };
    expect(error).toEqual({
      message,
      type: 'invalid_request_error',
      param: null,
      code: 'provider_not_found',
    });
    expect(further).toEqual({ message: error.message });
    expect(answered.header('x-amzn-errortype')).toBe('ResourceNotFoundException');
    expect(answered.header('x-amzn-requestid')).toBe(answered.header('x-gateway-request-id'));
    const other = await call('POST /v1/models/model/converse');
    expect(JSON.parse(other.body.toString())).not.toHaveProperty('message');
    expect(other.header('x-amzn-errortype')).toBeUndefined();
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

  never.each([
    'POST /v1/files',
    'GET /v1/chat/completions',
    'DELETE /v1/models/x',
    'POST /v1/chat/completions/',
  ])('does not let an inference key use %s', async (line) => {
    const reply = await call(line);
    expect([reply.status, reply.header('x-gateway-error')]).toEqual([403, 'endpoint_not_allowed']);
  });

  never('does not let a POST pose as another method', async () => {
    const reply = await call('POST /v1/chat/completions', ['X-HTTP-Method-Override: DELETE']);
    expect([reply.status, reply.header('x-gateway-error')]).toEqual([403, 'endpoint_not_allowed']);
  });
});
