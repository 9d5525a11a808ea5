import { generateKey } from '../../src/keys/key-secret.js';
import { deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';
import { PROVIDER_KEY } from '../support/gateway.js';
import { never } from '../support/never.js';
import { request } from '../support/raw-client.js';
import { answer } from '../support/raw-provider.js';
import { responsesOn, echo, Wire } from '../support/wire.js';

describe('early hints', () => {
  let wire: Wire;

  beforeAll(async () => {
    wire = await Wire.start();
  });
  afterAll(() => wire.stop());

  /** Everything a client is sent before the final head when the provider sends these interim answers. */
  async function heads(interim: string, version = '1.1'): Promise<string[]> {
    wire.provider.script = async (req) => {
      await req.body;
      req.socket.write(Buffer.concat([Buffer.from(interim, 'latin1'), answer('200 OK', [], 'ok')]));
    };
    const client = await wire.connect();
    client.send(
      Buffer.from(
        request('POST /v1/chat/completions', [wire.auth], '{}')
          .toString('latin1')
          .replace('HTTP/1.1', `HTTP/${version}`),
      ),
    );
    const seen: string[] = [];
    for (;;) {
      const head = await client.reader.head();
      if (!/^HTTP\/1\.1 1/.test(head)) break;
      seen.push(head);
    }
    client.destroy();
    await wire.expectSound(1);
    return seen;
  }

  it('passes 103 on with its Link headers and nothing else', async () => {
    const links = 'Link: </a.css>; rel=preload\r\nlink: </b\xe9>; rel=x';
    expect(
      await heads(`HTTP/1.1 103 Early Hints\r\n${links}\r\nX-Other: 1\r\nSet-Cookie: a=b\r\n\r\n`),
    ).toEqual([`HTTP/1.1 103 Early Hints\r\n${links}`]);
  });

  it('passes on each of several, in order', async () => {
    const hint = (n: number) => `HTTP/1.1 103 Early Hints\r\nLink: </${n}>\r\n\r\n`;
    expect(await heads(hint(1) + 'HTTP/1.1 102 Processing\r\n\r\n' + hint(2))).toEqual([
      'HTTP/1.1 103 Early Hints\r\nLink: </1>',
      'HTTP/1.1 103 Early Hints\r\nLink: </2>',
    ]);
  });

  it.each([
    ['103 without Link', 'HTTP/1.1 103 Early Hints\r\nX-Other: 1\r\n\r\n'],
    ['103 whose Link holds the secret', `HTTP/1.1 103 Early Hints\r\nLink: <${PROVIDER_KEY}>\r\n\r\n`],
    ['102', 'HTTP/1.1 102 Processing\r\nLink: </a>\r\n\r\n'],
    ['199', 'HTTP/1.1 199 Odd\r\nLink: </a>\r\n\r\n'],
  ])('drops %s', async (_, interim) => {
    expect(await heads(interim)).toEqual([]);
  });

  it('sends no 103 to an HTTP/1.0 client (RFC 9110 15.2)', async () => {
    expect(await heads('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n', '1.0')).toEqual([]);
  });

  it.each([
    ['16 of any kind', 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(16), 200],
    ['more than 16', 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(17), 502],
    ['more than 16 hints', 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(17), 502],
    ['60 KB', `HTTP/1.1 103 Early Hints\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`.repeat(3), 200],
    ['80 KB', `HTTP/1.1 103 Early Hints\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`.repeat(4), 502],
  ])('bounds interim responses: %s', async (_, interim, status) => {
    wire.provider.script = async (req) => {
      await req.body;
      req.socket.write(interim);
      req.socket.write(answer('200 OK', [], 'ok'));
    };
    const client = await wire.connect();
    client.send(request('POST /v1/chat/completions', [wire.auth], '{}'));
    let reply = await client.head();
    while (reply.status < 200) reply = await client.head();
    expect(reply.status).toBe(status);
    if (status === 502) {
      expect(reply.header('x-gateway-error')).toBe('upstream_invalid_response');
      expect(await wire.gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({
        outcome: 'upstream_error',
        error_code: 'upstream_invalid_response',
      });
    }
    client.destroy();
    await wire.expectSound(1);
  });

  it('ends a call whose provider sends hints without end to a client that does not read', async () => {
    let stopped = 0;
    wire.provider.script = async (req) => {
      await req.body;
      const hint = `HTTP/1.1 103 Early Hints\r\nLink: <${'a'.repeat(4_000)}>\r\n\r\n`;
      let open = true;
      void req.closed.then(() => (open = false));
      while (open && stopped < 64 * 1024 * 1024) {
        stopped += hint.length;
        if (!req.socket.write(hint)) {
          await Promise.race([req.closed, new Promise((drained) => req.socket.once('drain', drained))]);
        }
      }
    };
    const client = await wire.connect();
    client.socket.pause();
    client.send(request('POST /v1/embeddings', [wire.auth], '{}'));
    const [row] = await eventually(async () => {
      const rows = await wire.gateway.database.query<{ error_code: string }>(
        `SELECT error_code FROM request_log WHERE path = '/v1/embeddings'`,
      );
      return rows.length > 0 && rows;
    });
    expect(row!.error_code).toBe('upstream_invalid_response');
    expect(stopped).toBeLessThan(64 * 1024 * 1024);
    client.destroy();
    await wire.expectSound(1);
  });

  it('answers 502 to a 100 that nobody asked for', async () => {
    wire.provider.script = async (req) => {
      await req.body;
      req.socket.write('HTTP/1.1 100 Continue\r\n\r\n');
      req.socket.write(answer('200 OK', [], 'ok'));
    };
    wire.expectRejection(
      await wire.call('POST /v1/chat/completions', [], '{}'),
      502,
      'upstream_invalid_response',
    );
    await wire.expectSound(1);
  });
});

describe('expect: 100-continue', () => {
  let wire: Wire;

  beforeAll(async () => {
    wire = await Wire.start({ MAX_BODY_BYTES: '1000000' });
  });
  afterEach(() => {
    wire.provider.script = echo;
  });
  afterAll(() => wire.stop());

  const LINE = 'POST /v1/chat/completions';
  const EXPECT = 'Expect: 100-continue';

  it.each([
    ['a length', 'Content-Length: 5', 'hello'],
    ['a length too large to be gathered', 'Content-Length: 500000', 'x'.repeat(500_000)],
    ['chunks', 'Transfer-Encoding: chunked', '5\r\nhello\r\n0\r\n\r\n'],
  ])('tells a client with a good key to continue, and carries its body: %s', async (_, framing, body) => {
    const client = await wire.connect();
    client.send(request(LINE, [wire.auth, EXPECT, framing]));
    expect(await client.reader.head()).toBe('HTTP/1.1 100 Continue');
    client.send(body);
    const reply = await client.answer();
    expect(reply.status).toBe(200);
    expect(reply.body.length).toBe(framing.includes('500000') ? 500_000 : 5);
    expect(wire.provider.requests.at(-1)!.head).not.toMatch(/expect/i);
    // The connection goes on.
    client.send(request(LINE, [wire.auth], 'next'));
    expect((await client.answer()).body.toString()).toBe('next');
    client.destroy();
    await wire.expectSound(2);
  });

  never.each([
    ['no key', 401, 'invalid_api_key', [EXPECT, 'Content-Length: 5']],
    ['a bad key', 401, 'invalid_api_key', ['Authorization: Bearer x', EXPECT, 'Content-Length: 5']],
    ['a body too large', 413, 'request_too_large', [EXPECT, 'Content-Length: 1000001']],
    ['another expectation', 417, 'expectation_failed', ['Expect: teapot', 'Content-Length: 5']],
    ['two expectations', 417, 'expectation_failed', ['Expect: 100-continue, teapot', 'Content-Length: 5']],
    ['two Expect lines', 417, 'expectation_failed', [EXPECT, 'Expect: teapot', 'Content-Length: 5']],
    ['an unsafe framing', 400, 'invalid_request', [EXPECT, 'Transfer-Encoding: gzip, chunked']],
  ])(
    'never tells a client with %s to continue, and ends its connection',
    async (_, status, code, headers) => {
      const client = await wire.connect();
      const auth = status === 401 ? [] : [wire.auth];
      client.send(request(LINE, [...auth, ...headers]));
      const reply = await client.answer();
      wire.expectRejection(reply, status, code);
      expect(reply.header('connection')).toBe('close');
      // The client may or may not send the body that it was not asked for; neither may be taken for a request.
      client.send(request(LINE, [wire.auth], 'smuggled'));
      expect(await responsesOn(client, 1)).toEqual([]);
      await client.closed;
      await wire.expectSound(0);
    },
  );

  it('takes a body that does not wait', async () => {
    const client = await wire.connect();
    client.send(request(LINE, [wire.auth, 'expect: 100-Continue'], 'hello'));
    expect(await client.reader.head()).toBe('HTTP/1.1 100 Continue');
    expect((await client.answer()).body.toString()).toBe('hello');
    client.destroy();
    await wire.expectSound(1);
  });

  it('does not tell an HTTP/1.0 client to continue (RFC 9110 10.1.1)', async () => {
    const client = await wire.connect();
    client.send(`${LINE} HTTP/1.0\r\n${wire.auth}\r\n${EXPECT}\r\nContent-Length: 5\r\n\r\nhello`);
    const reply = await client.answer();
    expect([reply.status, reply.body.toString()]).toEqual([200, 'hello']);
    client.destroy();
    await wire.expectSound(1);
  });

  it('says the word in a pipeline when the turn of its request has come, and never amid a response', async () => {
    const held = deferred();
    const before = wire.provider.requests.length;
    wire.provider.script = async (req) => {
      const { bytes } = await req.body;
      if (bytes.toString() === 'first') await held.promise;
      req.socket.write(answer('200 OK', [], bytes));
    };
    const client = await wire.connect();
    client.send(
      Buffer.concat([
        request(LINE, [wire.auth], 'first'),
        request(LINE, [wire.auth, EXPECT], 'second'),
        request(LINE, [wire.auth, EXPECT], 'third'),
        request(LINE, [wire.auth], 'fourth'),
      ]),
    );
    await eventually(() => wire.provider.requests.length === before + 1);
    held.resolve();
    const seen: string[] = [];
    while (seen.length < 6) {
      const head = await client.head();
      seen.push(head.status === 100 ? 'continue' : (await client.reader.body(head.headers)).bytes.toString());
    }
    expect(seen).toEqual(['first', 'continue', 'second', 'continue', 'third', 'fourth']);
    client.destroy();
    await wire.expectSound(4);
  });

  never('forwards nothing of a pipelined request that waited for its turn when its client left', async () => {
    const held = deferred();
    const before = wire.provider.requests.length;
    wire.provider.script = async (req) => {
      await req.closed;
      held.resolve();
    };
    const client = await wire.connect();
    client.send(
      Buffer.concat([request(LINE, [wire.auth], 'first'), request(LINE, [wire.auth, EXPECT], 'second')]),
    );
    await eventually(() => wire.provider.requests.length === before + 1);
    client.destroy();
    await held.promise;
    await wire.expectSound(1);
  });

  it('answers what came behind a rejected request that was sent whole', async () => {
    // Well-formed, so that it is rejected only after a look-up, when the next request has been let in.
    const unknown = `Authorization: Bearer ${generateKey()}`;
    const [reply, second] = await wire.send(
      Buffer.concat([request(LINE, [unknown, EXPECT], 'a body'), request(LINE, [wire.auth], 'behind')]),
      2,
    );
    wire.expectRejection(reply, 401, 'invalid_api_key');
    expect([second?.status, second?.body.toString()]).toEqual([200, 'behind']);
    await wire.expectSound(1);
  });
});
