import { deferred } from '../support/deferred.js';
import { never } from '../support/never.js';
import { RawClient, request } from '../support/raw-client.js';
import { answer, chunk, type ReceivedRequest } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';

describe('without a body', () => {
  let wire: Wire;
  let client: RawClient;
  beforeAll(async () => {
    wire = await Wire.start();
    client = await wire.connect();
  });
  afterAll(async () => {
    client.destroy();
    await wire.stop();
  });

  const JUNK = '{"leaked":"body of another answer"}';

  // RFC 9112 6.3: what these are followed by is no body of theirs, whatever their headers say.
  never.each([
    ['GET', '204 No Content', 'X-A: b', JUNK],
    ['GET', '204 No Content', `Content-Length: ${JUNK.length}`, JUNK],
    ['GET', '204 No Content', 'Transfer-Encoding: chunked', `23\r\n${JUNK}\r\n0\r\n\r\n`],
    ['GET', '304 Not Modified', 'ETag: "a"', JUNK],
    // Its length is that of the answer a 200 would have carried (RFC 9110 8.6).
    ['GET', '304 Not Modified', 'Content-Length: 1000', ''],
    ['GET', '304 Not Modified', `Content-Length: ${JUNK.length}`, JUNK],
    ['HEAD', '200 OK', 'Content-Length: 1000', ''],
    ['HEAD', '200 OK', `Content-Length: ${JUNK.length}`, JUNK],
    ['HEAD', '200 OK', 'Transfer-Encoding: chunked', ''],
    ['HEAD', '404 Not Found', 'X-A: b', JUNK],
  ])('%s answered %s with %s', async (method, status, header, body) => {
    wire.provider.script = (req) => {
      req.socket.write(`HTTP/1.1 ${status}\r\n${header}\r\n\r\n${body}`);
    };
    client.send(request(`${method} /v1/models`, [wire.auth]));
    const reply = await client.answer({ bodyless: true });
    expect(reply.head.split('\r\n')[0]).toBe(`HTTP/1.1 ${status}`);
    expect(await wire.gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({
      outcome: 'completed',
      status: Number(status.slice(0, 3)),
      response_bytes: '0',
    });

    // The next call on the same connection of the client gets its own answer.
    wire.provider.script = (req) => {
      req.socket.write(answer('200 OK', [], 'mine'));
    };
    client.send(request('GET /v1/models', [wire.auth]));
    expect((await client.answer()).body.toString()).toBe('mine');
    expect(client.reader.rest.length).toBe(0);
  });
});

describe('extra bytes', () => {
  let wire: Wire;
  beforeAll(async () => {
    wire = await Wire.start();
  });
  afterAll(() => wire.stop());

  const CALL = 'POST /v1/chat/completions';
  const STRAY = answer('200 OK', ['X-Stray: 1'], 'another answer');

  /** Answers each request with its own body, on whatever connection it comes. */
  async function echo(req: ReceivedRequest) {
    req.socket.write(answer('200 OK', [], (await req.body).bytes));
  }

  async function expectOwnAnswers() {
    wire.provider.script = echo;
    for (const body of ['one', 'two', 'three']) {
      const reply = await wire.call(CALL, [], body);
      expect([reply.status, reply.header('x-stray'), reply.body.toString()]).toEqual([200, undefined, body]);
    }
  }

  never.each([
    ['garbage', Buffer.from('garbage')],
    ['a line end', Buffer.from('\r\n\r\n')],
    ['a whole second answer', STRAY],
    ['the beginning of a second answer', STRAY.subarray(0, 20)],
  ])('%s in the same write as the response reaches nobody', async (_, extra) => {
    wire.provider.script = async (req) => {
      req.socket.write(Buffer.concat([answer('200 OK', [], (await req.body).bytes), extra]));
    };
    expect((await wire.call(CALL, [], 'first')).body.toString()).toBe('first');
    await expectOwnAnswers();
  });

  never.each([
    ['a whole second answer', STRAY],
    ['the head of a second answer', STRAY.subarray(0, STRAY.indexOf('\r\n\r\n'))],
    ['garbage', Buffer.from('garbage')],
  ])('%s on an idle connection ends it and reaches nobody', async (_, extra) => {
    wire.provider.script = echo;
    expect((await wire.call(CALL, [], 'first')).body.toString()).toBe('first');
    const idle = wire.provider.requests.at(-1)!;
    idle.socket.write(extra);
    // Nothing but the stray bytes can have made the gateway close it: its idle time is far from over.
    await idle.closed;
    await expectOwnAnswers();
  });

  never('a body longer than its length is cut there and the rest reaches nobody', async () => {
    wire.provider.script = async (req) => {
      await req.body;
      req.socket.write(
        Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokay'), STRAY]),
      );
    };
    expect((await wire.call(CALL, [], '{}')).body.toString()).toBe('ok');
    await expectOwnAnswers();
  });
});

describe('reset', () => {
  let wire: Wire;
  beforeAll(async () => {
    wire = await Wire.start();
  });
  afterAll(() => wire.stop());

  const CALL = 'POST /v1/chat/completions';

  /** How the provider ends its connection: with a FIN, or with a reset as a crashed process does. */
  const ENDINGS = ['end', 'resetAndDestroy'] as const;

  describe.each(ENDINGS)('a provider that breaks off by %s', (ending) => {
    it.each([
      ['before its head', ''],
      ['in its status line', 'HTTP/1.1 20'],
      ['in its head', 'HTTP/1.1 200 OK\r\nContent-Le'],
      ['after an interim answer', 'HTTP/1.1 103 Early Hints\r\nX-A: b\r\n\r\n'],
    ])('%s is a 502', async (_, bytes) => {
      wire.provider.script = async (req) => {
        await req.body;
        if (bytes === '') req.socket[ending]();
        else req.socket.write(bytes, () => req.socket[ending]());
      };
      const reply = await wire.call(CALL, [], '{}');
      wire.expectRejection(reply, 502, 'upstream_invalid_response');
      expect(await wire.gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({
        outcome: 'upstream_error',
        status: 502,
        error_code: 'upstream_invalid_response',
        response_bytes: '0',
      });
    });

    it.each([
      ['after its head, in chunks', 'Transfer-Encoding: chunked', ''],
      ['mid-body, in chunks', 'Transfer-Encoding: chunked', chunk('half').toString()],
      ['inside a chunk', 'Transfer-Encoding: chunked', `${chunk('half').toString()}7\r\nhal`],
      ['after its head, with a length', 'Content-Length: 9', ''],
      ['mid-body, with a length', 'Content-Length: 9', 'half'],
      [
        'before the last chunk of a connection it closes',
        'Connection: close\r\nTransfer-Encoding: chunked',
        '',
      ],
      ['short of a length on a connection it closes', 'Connection: close\r\nContent-Length: 9', 'half'],
    ])('%s is seen by the client', async (_, framing, bytes) => {
      wire.provider.script = async (req) => {
        await req.body;
        req.socket.write(`HTTP/1.1 200 OK\r\n${framing}\r\n\r\n${bytes}`);
        await headSeen.promise;
        req.socket[ending]();
      };
      const headSeen = deferred();
      const client = await wire.connect();
      client.send(request(CALL, [wire.auth], '{}'));
      const head = await client.head();
      headSeen.resolve();
      await client.closed;
      // What came, and nothing after it: no last chunk, no appended error.
      expect(client.reader.rest.toString()).toBe(bytes.replace('7\r\nhal', chunk('hal').toString()));
      expect(await wire.gateway.row(head.header('x-gateway-request-id')!)).toMatchObject({
        outcome: 'truncated',
        status: 200,
      });
    });
  });

  it('a refused connection is a 502 and an unreachable provider', async () => {
    const { url } = wire.provider;
    await wire.provider.stop();
    const reply = await wire.call(CALL, [], '{}');
    wire.expectRejection(reply, 502, 'upstream_unreachable');
    expect(reply.body.toString()).not.toContain(new URL(url).port);
    expect(await wire.gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({
      outcome: 'upstream_error',
      status: 502,
      error_code: 'upstream_unreachable',
    });
  });
});

describe('trailer fields', () => {
  let wire: Wire;
  beforeAll(async () => {
    wire = await Wire.start();
  });
  afterAll(() => wire.stop());

  const CALL = 'POST /v1/chat/completions';

  it.each([
    'X-Sum: 1',
    'Connection: close',
    'Connection: keep-alive',
    'Transfer-Encoding: gzip',
    'Transfer-Encoding: identity',
    'Transfer-Encoding: chunked',
    'Content-Length: 5',
    'Content-Length: 99',
    'Content-Length: x',
    'Upgrade: h2c',
  ])('%s changes neither its own response nor the next call', async (trailer) => {
    wire.provider.script = async (req) => {
      await req.body;
      req.socket.write(
        `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n${trailer}\r\n\r\n`,
      );
    };
    let { connections } = wire.provider;
    for (let i = 0; i < 3; i++) {
      const reply = await wire.call(CALL, [], '{}');
      expect([reply.status, reply.body.toString()]).toEqual([200, 'hello']);
      expect(await wire.gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({
        outcome: 'completed',
        response_bytes: '5',
      });
      // The first may have come on a connection that is there.
      if (i > 0) expect(wire.provider.connections).toBe(++connections);
      else connections = wire.provider.connections;
    }
    await wire.expectSound(3);
  });

  it('a body that breaks off before its trailer fields stays visibly cut', async () => {
    wire.provider.script = async (req) => {
      await req.body;
      req.socket.end(
        'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nContent-Length: 5\r\n\r\n',
      );
    };
    await expect(wire.call(CALL, [], '{}')).rejects.toThrow('the connection ended');
    await wire.expectSound(1);
  });
});
