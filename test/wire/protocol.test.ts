import { PROVIDER_KEY } from '../support/gateway.js';
import { never } from '../support/never.js';
import { request } from '../support/raw-client.js';
import { chunk, LAST_CHUNK } from '../support/raw-provider.js';
import { echo, Wire } from '../support/wire.js';

describe('HTTP/1.0', () => {
  let wire: Wire;
  beforeAll(async () => {
    wire = await Wire.start();
  });
  afterAll(() => wire.stop());

  // RFC 9112 6.1: a server must not send Transfer-Encoding to a client of an earlier version, whatever that client says.
  it.each([
    '',
    'TE: chunked\r\n',
    'Connection: keep-alive\r\n',
    'Connection: TE\r\nTE: trailers, chunked\r\n',
  ])('an HTTP/1.0 client that says %j gets no chunks', async (said) => {
    wire.provider.script = async (req) => {
      await req.body;
      req.socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      req.socket.write(chunk('one'));
      req.socket.write(chunk('two'));
      req.socket.write(LAST_CHUNK);
    };
    const [reply] = await wire.send(
      `POST /v1/chat/completions HTTP/1.0\r\n${wire.auth}\r\n${said}Content-Length: 2\r\n\r\n{}`,
    );
    expect(reply!.header('transfer-encoding')).toBeUndefined();
    expect(reply!.header('connection')).toBe('close');
    expect(reply!.body.toString()).toBe('onetwo');
    await wire.expectSound(1);
  });

  it('is not told to continue, for it does not know the word (RFC 9110 15.2)', async () => {
    wire.provider.script = echo;
    const [reply] = await wire.send(
      `POST /v1/chat/completions HTTP/1.0\r\n${wire.auth}\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}`,
    );
    expect([reply!.status, reply!.body.toString()]).toEqual([200, '{}']);
  });

  it('passes a length on and closes', async () => {
    wire.provider.script = (req) => {
      req.socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    };
    const [reply] = await wire.send(`GET /v1/models HTTP/1.0\r\n${wire.auth}\r\n\r\n`);
    expect([reply!.header('content-length'), reply!.header('connection'), reply!.body.toString()]).toEqual([
      '2',
      'close',
      'ok',
    ]);
  });
});

describe('upgrade', () => {
  let wire: Wire;

  beforeAll(async () => {
    wire = await Wire.start();
  });
  afterAll(() => wire.stop());

  /** RFC 9110 7.8: a server may ignore Upgrade, and a proxy does not pass it on. */
  it.each([
    ['h2c', ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__']],
    ['Upgrade without Connection', ['Upgrade: h2c']],
  ])('serves a request that asks for %s as plain HTTP/1.1', async (_, headers) => {
    for (const [line, body] of [
      ['GET /v1/models', ''],
      ['POST /v1/chat/completions', '{"a":1}'],
    ] as const) {
      const client = await wire.connect();
      const asking = request(line, [wire.auth, ...headers], body);
      const next = request(`${line}?next`, [wire.auth], body);
      // What follows in the same packet is lost by Node, so the connection must say that it ends, and end.
      client.send(Buffer.concat([asking, next.subarray(0, 10)]));
      const reply = await client.answer();
      expect([reply.status, reply.body.toString(), reply.header('connection')]).toEqual([200, body, 'close']);
      client.send(next.subarray(10));
      await client.closed;
      expect(client.reader.rest).toHaveLength(0);
      expect(wire.provider.requests.at(-1)!.head).not.toMatch(/upgrade|http2-settings|h2c/i);
      await wire.expectSound(1);
    }
  });

  // RFC 9110 15.5.22. With another status, Codex tries for 5 to 10 s before it sends plain HTTP.
  it.each([
    ['GET /v1/responses', 'Upgrade: websocket'],
    ['GET /v1/realtime?model=gpt-realtime', 'Upgrade: WebSocket'],
    ['GET /p/default/v1/responses', 'Upgrade: h2c, websocket'],
    ['POST /v1/chat/completions', 'Upgrade: websocket'],
    // nginx drops it.
    ['GET /v1/responses', 'Accept: */*'],
  ])('rejects %s with %s at once', async (line, upgrade) => {
    const headers = ['Connection: Upgrade', upgrade, 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: x'];
    const reply = await wire.call(line, headers);
    wire.expectRejection(reply, 426, 'upgrade_required');
    expect(['upgrade', 'connection', 'x-should-retry'].map((name) => reply.header(name))).toEqual([
      'HTTP/1.1',
      'close, upgrade',
      'false',
    ]);
    await wire.expectSound(0);
  });

  it('rejects a WebSocket without a key as any other call, and with a key whatever that may use', async () => {
    const handshake = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'];
    const [keyless] = await wire.send(request('GET /v1/responses', handshake, ''));
    wire.expectRejection(keyless, 401, 'invalid_api_key');
    const limited = `Authorization: Bearer ${wire.gateway.key}`;
    const [inference] = await wire.send(request('GET /v1/responses', [limited, ...handshake], ''));
    wire.expectRejection(inference, 426, 'upgrade_required');
    const [messages] = await wire.send(request('GET /v1/messages', [limited, ...handshake], ''));
    expect([messages!.status, JSON.parse(messages!.body.toString())]).toMatchObject([
      426,
      { type: 'error', error: { type: 'invalid_request_error' } },
    ]);
    await wire.expectSound(0);
  });

  never('does not pass on a protocol switch that nobody asked for', async () => {
    wire.provider.script = (req) => {
      req.socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nbytes');
    };
    const reply = await wire.call('GET /v1/models', ['Connection: Upgrade', 'Upgrade: x']);
    wire.expectRejection(reply, 502, 'upstream_invalid_response');
    await wire.expectSound(1);
  });
});

describe('trailers', () => {
  let wire: Wire;

  beforeAll(async () => {
    wire = await Wire.start();
  });
  afterAll(() => wire.stop());

  const CHUNKED = 'Transfer-Encoding: chunked';
  const WITH_TRAILER = '2\r\n{}\r\n0\r\nX-Sum: 1\r\nX-Gateway-Key: 2\r\n\r\n';
  const WITHOUT = '2\r\n{}\r\n0\r\n\r\n';

  /** RFC 9110 6.5.1: they may be dropped, and merging them into the head is what must not happen. */
  never("drops a client's trailers", async () => {
    const [reply] = await wire.send(
      request('POST /v1/chat/completions', [wire.auth, 'Trailer: X-Sum', CHUNKED], WITH_TRAILER),
    );
    expect(reply!.status).toBe(200);
    const { head, body } = wire.provider.requests.at(-1)!;
    expect(head).not.toMatch(/x-sum|x-gateway/i);
    expect((await body).framed.toString()).toBe(WITHOUT);
    await wire.expectSound(1);
  });

  never("drops a provider's trailers", async () => {
    wire.provider.script = async (req) => {
      await req.body;
      req.socket.write(`HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\n${CHUNKED}\r\n\r\n${WITH_TRAILER}`);
    };
    const client = await wire.connect();
    client.send(request('POST /v1/chat/completions', [wire.auth], '{}'));
    const head = await client.head();
    expect(head.head).not.toMatch(/x-sum|trailer/i);
    expect((await client.reader.body(head.headers)).framed.toString()).toBe(WITHOUT);
    client.destroy();
    await wire.expectSound(1);
  });
});

describe('reason phrases', () => {
  let wire: Wire;

  beforeAll(async () => {
    wire = await Wire.start();
  });
  afterAll(() => wire.stop());

  /** Contract: the reason as the provider sent it; one outside ASCII becomes the standard phrase. */
  never.each([
    ['HTTP/1.1 200 OK', 'HTTP/1.1 200 OK'],
    ['HTTP/1.1 200 Fine, thanks', 'HTTP/1.1 200 Fine, thanks'],
    ['HTTP/1.1 200 ', 'HTTP/1.1 200 '],
    ['HTTP/1.1 200', 'HTTP/1.1 200 '],
    ['HTTP/1.1 200 two  blanks\tand a tab', 'HTTP/1.1 200 two  blanks\tand a tab'],
    ['HTTP/1.1 418 ', 'HTTP/1.1 418 '],
    ['HTTP/1.1 429 Slow \xe9', 'HTTP/1.1 429 Too Many Requests'],
    ['HTTP/1.1 429 Slow \xc3\xa9', 'HTTP/1.1 429 Too Many Requests'],
    ['HTTP/1.1 599 \xff', 'HTTP/1.1 599 '],
    ['HTTP/1.1 299 Odd', 'HTTP/1.1 299 Odd'],
    ['HTTP/1.1 529 Overloaded', 'HTTP/1.1 529 Overloaded'],
    ['HTTP/1.1 999 Beyond', 'HTTP/1.1 999 Beyond'],
    ['HTTP/1.0 200 Old', 'HTTP/1.1 200 Old'],
  ])('passes %j on as %j', async (sent, seen) => {
    wire.provider.script = async (req) => {
      await req.body;
      req.socket.write(Buffer.from(`${sent}\r\nContent-Length: 2\r\n\r\nok`, 'latin1'));
    };
    const reply = await wire.call('POST /v1/chat/completions', [], '{}');
    expect(reply.head.split('\r\n')[0]).toBe(seen);
    expect(reply.body.toString()).toBe('ok');
    await wire.expectSound(1);
  });
});

describe('connection options', () => {
  let wire: Wire;

  beforeAll(async () => {
    wire = await Wire.start();
  });
  afterAll(() => wire.stop());

  /** The names that reached the provider beyond what every request carries. */
  async function passed(headers: string[]): Promise<string[]> {
    const [reply] = await wire.send(request('POST /v1/chat/completions', [wire.auth, ...headers], '{}'));
    expect([reply!.status, reply!.body.toString()]).toEqual([200, '{}']);
    const { headers: seen } = wire.provider.requests.at(-1)!;
    expect(seen).toContainEqual(['Authorization', `Bearer ${PROVIDER_KEY}`]);
    await wire.expectSound(1);
    const always = ['host', 'connection', 'authorization', 'content-length'];
    return seen.map(([name]) => name).filter((name) => !always.includes(name.toLowerCase()));
  }

  /** RFC 9110 7.6.1: what `Connection` lists is for this hop alone. */
  never.each([
    ['one name', ['Connection: x-foo']],
    ['another case', ['connection: X-FOO']],
    ['a list', ['Connection: keep-alive , x-foo']],
    ['empty elements', ['Connection: ,, x-foo,']],
    ['tabs', ['Connection: \tx-foo\t,\tkeep-alive']],
    ['two lines', ['Connection: keep-alive', 'Connection: x-foo']],
    ['close as well', ['Connection: close, x-foo']],
  ])('drops what Connection lists: %s', async (_, connection) => {
    expect(await passed(['X-Foo: 1', ...connection, 'X-Bar: 2', 'x-foo: 3'])).toEqual(['X-Bar']);
  });

  it('does not let Connection take away what the call needs', async () => {
    const list =
      'authorization, content-length, content-type, content-encoding, host, idempotency-key, x-api-key';
    expect(
      await passed([
        `Connection: ${list}, transfer-encoding, connection`,
        'Content-Type: a/b',
        'Idempotency-Key: 1',
      ]),
    ).toEqual(['Content-Type', 'Idempotency-Key']);
  });

  it.each(['__proto__', 'constructor', 'hasOwnProperty'])(
    'takes %s for a name like any other',
    async (name) => {
      expect(await passed([`${name}: 1`, 'X-Bar: 2'])).toEqual([name, 'X-Bar']);
      expect(await passed([`${name}: 1`, `Connection: ${name}`, 'X-Bar: 2'])).toEqual(['X-Bar']);
    },
  );

  it('does the same with what a provider lists', async () => {
    wire.provider.script = async (req) => {
      await req.body;
      const head =
        'HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Foo, content-length, content-type, x-gateway-request-id';
      req.socket.write(`${head}\r\nX-Foo: 1\r\nContent-Type: a/b\r\nX-Bar: 2\r\nContent-Length: 2\r\n\r\nok`);
    };
    const reply = await wire.call('POST /v1/chat/completions', [], '{}');
    expect(reply.headers.slice(0, -2)).toEqual([
      ['Content-Type', 'a/b'],
      ['X-Bar', '2'],
      ['Content-Length', '2'],
      ['x-gateway-request-id', expect.any(String)],
    ]);
    expect(reply.headers.slice(-2).map(([name]) => name)).toEqual(['Connection', 'Keep-Alive']);
    await wire.expectSound(1);
  });
});
