import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { RawClient, request } from '../support/raw-client.js';
import { answer, RawProvider, type ReceivedRequest } from '../support/raw-provider.js';
import { echo, Wire } from '../support/wire.js';

describe('carried', () => {
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

  const json = Buffer.from('{"model":"gpt-4o",  "b":1, "a" : 1.0e5, "b":2, "s":"\\u00e9 é \\ud83d"}\n');
  const BODIES: [what: string, type: string, body: Buffer][] = [
    ['JSON with odd spacing, repeated names and numbers', 'application/json', json],
    ['JSON that does not parse', 'application/json', Buffer.from('{"model": "gpt-4o", "messages": [')],
    ['gzip', 'application/json', gzipSync(json)],
    [
      'bytes of every value',
      'application/octet-stream',
      Buffer.from(Array.from({ length: 256 }, (_, i) => i)),
    ],
    ['an empty body', 'application/json', Buffer.alloc(0)],
    ['more than is gathered at once', 'application/octet-stream', randomBytes(300_000)],
    ['10 MB', 'application/octet-stream', randomBytes(10_000_000)],
  ];

  describe.each([
    ['with a Content-Length', false],
    ['in chunks', true],
  ])('a request body %s', (_, chunked) => {
    never.each(BODIES)('arrives byte for byte: %s', async (_what, type, body) => {
      let received: Buffer | undefined;
      provider.script = async (req) => {
        received = (await req.body).bytes;
        req.socket.write(answer('200 OK', [], 'ok'));
      };
      const client = await RawClient.connect(gateway.port);
      const framing = chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`;
      client.send(
        request('POST /v1/chat/completions', [
          `Authorization: Bearer ${gateway.key}`,
          `Content-Type: ${type}`,
          framing,
        ]),
      );
      if (chunked) {
        for (let at = 0; at < body.length; at += 70_000) {
          const part = body.subarray(at, at + 70_000);
          client.send(
            Buffer.concat([Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n')]),
          );
        }
        client.send('0\r\n\r\n');
      } else client.send(body);
      const reply = await client.answer();
      client.destroy();
      expect(reply.status).toBe(200);
      expect(received!.equals(body)).toBe(true);
      const [name] = provider.requests
        .at(-1)!
        .headers.find(([key]) => /^(content-length|transfer-encoding)$/i.test(key))!;
      expect(name.toLowerCase()).toBe(chunked && body.length > 0 ? 'transfer-encoding' : 'content-length');
      const row = await gateway.row(reply.header('x-gateway-request-id')!);
      expect(row).toMatchObject({
        outcome: 'completed',
        status: 200,
        request_bytes: String(body.length),
        response_bytes: '2',
      });
    });
  });

  describe.each([
    '200 OK',
    '400 Bad Request',
    '401 Unauthorized',
    '429 Too Many Requests',
    '500 Oops, sorry',
  ])('a response of %s', (status) => {
    never.each(BODIES)('comes back byte for byte: %s', async (_what, type, body) => {
      provider.script = async (req) => {
        await req.body;
        req.socket.write(
          answer(status, [`Content-Type: ${type}`, 'X-Request-Id: req_1', 'x-CASE: a', 'x-CASE: b'], body),
        );
      };
      const client = await RawClient.connect(gateway.port);
      client.send(request('POST /v1/chat/completions', [`Authorization: Bearer ${gateway.key}`], '{}'));
      const reply = await client.answer();
      client.destroy();
      expect(reply.head.split('\r\n')[0]).toBe(`HTTP/1.1 ${status}`);
      expect(reply.body.equals(body)).toBe(true);
      expect(reply.headers.slice(0, 5)).toEqual([
        ['Content-Type', type],
        ['X-Request-Id', 'req_1'],
        ['x-CASE', 'a'],
        ['x-CASE', 'b'],
        ['Content-Length', String(body.length)],
      ]);
      expect(reply.header('x-gateway-error')).toBeUndefined();
      const row = await gateway.row(reply.header('x-gateway-request-id')!);
      expect(row).toMatchObject({
        outcome: 'completed',
        status: Number(status.slice(0, 3)),
        response_bytes: String(body.length),
        provider_request_id: 'req_1',
        path: '/v1/chat/completions',
        method: 'POST',
        provider: 'default',
      });
    });
  });
});

describe('MAX_BODY_BYTES', () => {
  let wire: Wire;
  beforeAll(async () => {
    wire = await Wire.start({ MAX_BODY_BYTES: '1000' });
  });
  afterAll(() => wire.stop());
  beforeEach(() => {
    wire.provider.script = echo;
  });

  const CALL = 'POST /v1/chat/completions';
  const CHUNKED = 'Transfer-Encoding: chunked';
  const chunkOf = (size: number) => `${size.toString(16)}\r\n${'a'.repeat(size)}\r\n`;

  never('a body of exactly the limit passes, with a length and in chunks', async () => {
    const body = 'a'.repeat(1_000);
    expect((await wire.call(CALL, [], body)).body.toString()).toBe(body);
    const reply = await wire.call(CALL, [CHUNKED], `${chunkOf(500)}${chunkOf(500)}0\r\n\r\n`);
    expect(reply.body.toString()).toBe(body);
    await wire.expectSound(2);
  });

  it('a longer length is a 413 before anything is forwarded', async () => {
    wire.expectRejection(await wire.call(CALL, [], 'a'.repeat(1_001)), 413, 'request_too_large');
    await wire.expectSound(0);
  });

  it('chunks that pass the limit at once are a 413 before anything is forwarded', async () => {
    const client = await wire.connect();
    client.send(request(CALL, [wire.auth, CHUNKED], chunkOf(1_001)));
    wire.expectRejection(await client.answer(), 413, 'request_too_large');
    await expectTheRestToBeRest(client);
    await wire.expectSound(1);
  });

  it('chunks that pass the limit bit by bit are a 413, and the upload ends without its last chunk', async () => {
    const requests: ReceivedRequest[] = [];
    wire.provider.script = async (req) => {
      requests.push(req);
      await req.closed;
    };
    const client = await wire.connect();
    client.send(request(CALL, [wire.auth, CHUNKED], chunkOf(400)));
    await eventually(() => requests.length === 1);
    client.send(chunkOf(400) + chunkOf(400));
    const reply = await client.answer();
    wire.expectRejection(reply, 413, 'request_too_large');
    expect(reply.header('x-should-retry')).toBe('false');
    await requests[0]!.closed;
    await expect(requests[0]!.body).rejects.toThrow();
    const row = await wire.gateway.row(reply.header('x-gateway-request-id')!);
    expect(row).toMatchObject({ outcome: 'client_error', status: 413, error_code: 'request_too_large' });
    await expectTheRestToBeRest(client);
    await wire.expectSound(2);
  });

  /** The rest of the body is the rest of the body, and the connection serves on. */
  async function expectTheRestToBeRest(client: RawClient): Promise<void> {
    wire.provider.script = echo;
    client.send(`${chunkOf(300)}0\r\n\r\n`);
    client.send(request(CALL, [wire.auth], 'mine'));
    expect((await client.answer()).body.toString()).toBe('mine');
    client.destroy();
  }

  it('once a response has begun, its connection breaks', async () => {
    wire.provider.script = async (req) => {
      req.socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf');
      await req.closed;
    };
    const client = await wire.connect();
    client.send(request(CALL, [wire.auth, CHUNKED], chunkOf(10)));
    const reply = await client.head();
    client.send(chunkOf(1_000));
    await client.closed;
    const row = await wire.gateway.row(reply.header('x-gateway-request-id')!);
    expect(row).toMatchObject({ outcome: 'client_error', status: 200, error_code: 'request_too_large' });
    await wire.expectSound(1);
  });
});
