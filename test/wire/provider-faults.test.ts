import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { RawClient, request } from '../support/raw-client.js';
import { chunk, RawProvider } from '../support/raw-provider.js';
import { unusedPort } from '../support/unused-port.js';
import { Wire } from '../support/wire.js';

describe('provider errors', () => {
  /** Each with one short time limit, so that no call reaches another one. */
  let shortHeaders: TestGateway;
  let shortIdle: TestGateway;
  /** With the usual time limits, which a provider that breaks off must not reach. */
  let patient: TestGateway;
  let provider: RawProvider;

  beforeAll(async () => {
    provider = await RawProvider.start(() => {});
    patient = await startTestGateway({ PROVIDER_URL: provider.url });
    shortHeaders = await startTestGateway({ PROVIDER_URL: provider.url, UPSTREAM_HEADERS_TIMEOUT_MS: '300' });
    shortIdle = await startTestGateway({ PROVIDER_URL: provider.url, UPSTREAM_IDLE_TIMEOUT_MS: '400' });
  });
  afterAll(async () => {
    await shortIdle.stop();
    await shortHeaders.stop();
    await patient.stop();
    await provider.stop();
  });

  async function open(gateway: TestGateway): Promise<RawClient> {
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
    const client = await open(patient);
    const reply = await client.answer();
    client.destroy();
    expect([reply.status, reply.header('x-gateway-error')]).toEqual([502, code]);
    const row = await patient.row(reply.header('x-gateway-request-id')!);
    expect(row).toMatchObject({ outcome: 'upstream_error', status: 502, error_code: code });
  });

  it('answers 504 when the provider is silent', async () => {
    provider.script = async (req) => {
      await req.closed;
    };
    const client = await open(shortHeaders);
    const reply = await client.answer();
    client.destroy();
    expect([reply.status, reply.header('x-gateway-error')]).toEqual([504, 'upstream_timeout']);
    const row = await shortHeaders.row(reply.header('x-gateway-request-id')!);
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
      const through = end ? patient : shortIdle;
      const client = await open(through);
      const head = await client.head();
      expect(head.status).toBe(200);
      await client.closed;
      // The half that came, and nothing after it: no last chunk, no appended error.
      expect(client.reader.rest.toString()).toBe(bytes.toString());
      const row = await through.row(head.header('x-gateway-request-id')!);
      expect(row).toMatchObject({ outcome, status: 200, response_bytes: '4' });
    },
  );

  it('answers 502 upstream_unreachable when nobody listens', async () => {
    const unreachable = await startTestGateway({ PROVIDER_URL: `http://127.0.0.1:${await unusedPort()}` });
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
});

describe('malformed responses', () => {
  let wire: Wire;
  beforeAll(async () => {
    wire = await Wire.start();
  });
  afterAll(() => wire.stop());

  const OK = 'HTTP/1.1 200 OK\r\n';
  const END = 'Content-Length: 2\r\n\r\nok';

  it.each([
    ['is no HTTP', 'SSH-2.0-OpenSSH_9.6\r\n\r\n'],
    ['is an HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['is a TLS alert', Buffer.from('15030300020228', 'hex')],
    ['has a status of 099', `HTTP/1.1 099 X\r\n${END}`],
    ['has a status of 099, and the provider waits', 'HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n'],
    ['has a status of two digits', `HTTP/1.1 99 X\r\n${END}`],
    ['has a status of four digits', `HTTP/1.1 2000 X\r\n${END}`],
    ['is an unasked 100', `HTTP/1.1 100 Continue\r\n\r\n${OK}${END}`],
    ['is an unasked 101', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'],
    ['has a header without a colon', `${OK}Nonsense\r\n${END}`],
    ['has a space before a colon', `${OK}X-A : b\r\n${END}`],
    ['has a NUL in a header', `${OK}X-A: a\0b\r\n${END}`],
    ['has two lengths', `${OK}Content-Length: 3\r\n${END}`],
    ['has a length that is no number', `${OK}Content-Length: two\r\n\r\nok`],
    ['has a negative length', `${OK}Content-Length: -2\r\n\r\nok`],
    ['has an overflowing length', `${OK}Content-Length: 99999999999999999999999\r\n\r\nok`],
    ['has a length and chunks', `${OK}Transfer-Encoding: chunked\r\n${END}`],
    ['has another transfer coding', `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`],
    [
      'has its transfer coding twice',
      `${OK}Transfer-Encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
    ],
    ['has a transfer coding without chunks', `${OK}Transfer-Encoding: gzip\r\n\r\nok`],
    ['has more headers than fit', `${OK}X-A: ${'a'.repeat(70_000)}\r\n${END}`],
  ])('answers 502 when what the provider sends %s, and lives', async (_, bytes) => {
    wire.provider.script = async (req) => {
      await req.body;
      req.socket.write(bytes);
      await req.closed;
    };
    const reply = await wire.call('POST /v1/chat/completions', [], '{}');
    wire.expectRejection(reply, 502, 'upstream_invalid_response');
    expect(await wire.gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({
      outcome: 'upstream_error',
      status: 502,
      error_code: 'upstream_invalid_response',
      response_bytes: '0',
    });
    await wire.expectSound(1);
  });

  never.each([
    ['a chunk size that is none', 'Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n'],
    ['a chunk longer than its size', 'Transfer-Encoding: chunked\r\n\r\n4\r\nhalfway\r\n0\r\n\r\n'],
  ])('breaks off when the provider sends %s', async (_, bytes) => {
    wire.provider.script = async (req) => {
      await req.body;
      req.socket.write(`${OK}${bytes}`);
      await req.closed;
    };
    const [reply] = await wire.send(
      `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n${wire.auth}\r\nContent-Length: 2\r\n\r\n{}`,
    );
    expect(reply).toBeUndefined();
    await wire.expectSound(1);
  });

  never.each(['200', '299', '418', '529', '600', '999'])('passes on a status of %s', async (status) => {
    wire.provider.script = async (req) => {
      await req.body;
      req.socket.write(`HTTP/1.1 ${status}\r\n${END}`);
    };
    const reply = await wire.call('POST /v1/chat/completions', [], '{}');
    expect([reply.head.split('\r\n')[0]!.trimEnd(), reply.body.toString()]).toEqual([
      `HTTP/1.1 ${status}`,
      'ok',
    ]);
    await wire.expectSound(1);
  });
});

describe('reset while connecting', () => {
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await startTestGateway();
  });
  afterAll(() => gateway.stop());

  // Node takes its own listeners off a socket before it hands it over for CONNECT: a reset then has nobody to catch it.
  it('survives clients that ask for a tunnel and reset the connection', async () => {
    for (let i = 0; i < 30; i++) {
      const client = await RawClient.connect(gateway.port);
      client.send('CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n');
      if (i % 2 === 0) client.socket.resetAndDestroy();
      else await client.answer().then((reply) => expect(reply.status).toBe(405));
      client.socket.resetAndDestroy();
      await client.closed;
    }
    const probe = await fetch(`${gateway.url}/health/live`);
    expect(probe.status).toBe(200);
  });
});
