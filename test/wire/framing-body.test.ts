import { once } from 'node:events';
import { never } from '../support/never.js';
import { request } from '../support/raw-client.js';
import { responsesOn, Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

describe('ambiguous length', () => {
  const smuggled = () => request('GET /v1/models?smuggled', [wire.auth]).toString('latin1');

  /** RFC 9112 6.1 and 6.3: the length of these bodies is a matter of opinion, so nobody may have one. */
  never.each([
    ['Content-Length, then Transfer-Encoding', ['Content-Length: 5', 'Transfer-Encoding: chunked']],
    ['Transfer-Encoding, then Content-Length', ['Transfer-Encoding: chunked', 'Content-Length: 5']],
    ['Content-Length twice, differing', ['Content-Length: 5', 'Content-Length: 6']],
    ['Content-Length twice, the same', ['Content-Length: 5', 'Content-Length: 5']],
    ['a list in Content-Length', ['Content-Length: 5, 5']],
    ['two numbers in Content-Length', ['Content-Length: 5 5']],
    ['a sign', ['Content-Length: +5']],
    ['a negative length', ['Content-Length: -5']],
    ['a hexadecimal length', ['Content-Length: 0x5']],
    ['a fraction', ['Content-Length: 5.0']],
    ['an exponent', ['Content-Length: 5e0']],
    ['an underscore', ['Content-Length: 1_0']],
    ['no number', ['Content-Length: five']],
    ['an empty Content-Length', ['Content-Length:']],
    ['a blank Content-Length', ['Content-Length:   ']],
    ['2^64', ['Content-Length: 18446744073709551616']],
    ['2^64 + 5', ['Content-Length: 18446744073709551621']],
    ['2^63', ['Content-Length: 9223372036854775808']],
    ['2^53 + 1', ['Content-Length: 9007199254740993']],
    ['a quoted length', ['Content-Length: "5"']],
    ['Content-Length with a space before the colon', ['Content-Length : 5']],
    ['Content-Length folded', ['Content-Length:\r\n 5']],
  ])('rejects %s with 400 and closes', async (_, headers) => {
    const client = await wire.connect();
    client.send(request('POST /v1/chat/completions', [wire.auth, ...headers], `hello${smuggled()}`));
    wire.expectRejection(await client.answer(), 400, 'invalid_request');
    await client.closed;
    expect(client.reader.rest.toString('latin1')).toBe('');
    await wire.expectSound(0);
  });

  it('takes leading zeros and blanks before the number for what they are', async () => {
    const [reply] = await wire.send(
      request('POST /v1/chat/completions', [wire.auth, 'Content-Length: \t005 '], 'hello'),
    );
    expect([reply!.status, reply!.body.toString()]).toEqual([200, 'hello']);
    await wire.expectSound(1);
  });
});

describe('body length', () => {
  const LINE = 'POST /v1/chat/completions';

  never.each([
    ['Content-Length', 'Content-Length: 10', 'short'],
    ['chunks', 'Transfer-Encoding: chunked', '5\r\nshort\r\n'],
    ['half a chunk', 'Transfer-Encoding: chunked', 'a\r\nshort'],
  ])('a body that ends before its %s does is never passed on as a whole one', async (_, framing, body) => {
    const before = wire.provider.requests.length;
    const client = await wire.connect();
    client.send(request(LINE, [wire.auth, framing], body));
    client.socket.end();
    expect(await responsesOn(client, 1)).toEqual([]);
    await client.closed;
    const begun = wire.provider.requests.slice(before);
    for (const { body: passedOn } of begun) await expect(passedOn).rejects.toThrow();
    await wire.expectSound(begun.length);
  });

  it('what comes after the announced length is the next request, and rejected when it is none', async () => {
    const client = await wire.connect();
    client.send(request(LINE, [wire.auth, 'Content-Length: 2'], '{}and more than was announced\r\n\r\n'));
    const [first, second] = await responsesOn(client, 3);
    expect([first!.status, first!.body.toString()]).toEqual([200, '{}']);
    wire.expectRejection(second, 400, 'invalid_request');
    await client.closed;
    await wire.expectSound(1);
  });

  it('a line break after a body is part of nothing', async () => {
    const client = await wire.connect();
    for (const body of ['first', 'second']) {
      client.send(request(LINE, [wire.auth, `Content-Length: ${body.length}`], `${body}\r\n`));
      expect((await client.answer()).body.toString()).toBe(body);
    }
    client.destroy();
    await wire.expectSound(2);
  });

  never('what comes after a request that announced the end of its connection is no request', async () => {
    const client = await wire.connect();
    client.send(
      Buffer.concat([
        request(LINE, [wire.auth, 'Connection: close'], 'last'),
        request(LINE, [wire.auth], 'one more'),
      ]),
    );
    const [first] = await responsesOn(client, 2);
    expect([first!.status, first!.header('connection'), first!.body.toString()]).toEqual([
      200,
      'close',
      'last',
    ]);
    await client.closed;
    await wire.expectSound(1);
  });

  it('a connection without a request ends without a response', async () => {
    const client = await wire.connect();
    client.socket.end();
    await once(client.socket, 'end');
    await client.closed;
    expect(client.reader.rest).toHaveLength(0);
    await wire.expectSound(0);
  });
});

describe('chunks', () => {
  const head = () => request('POST /v1/chat/completions', [wire.auth, 'Transfer-Encoding: chunked']);

  /** RFC 9112 7.1: after any of these nobody can say where the body ends. */
  never.each([
    ['a bare LF after a size', '5\nhello\r\n0\r\n\r\n'],
    ['a bare LF after an extension', '5;a=b\nhello\r\n0\r\n\r\n'],
    ['a bare CR in an extension', '5;a\rb\r\nhello\r\n0\r\n\r\n'],
    ['a line break in a quoted extension', '5;a="\r\n"\r\nhello\r\n0\r\n\r\n'],
    ['no line break after the data', '5\r\nhello0\r\n\r\n'],
    ['a bare LF after the data', '5\r\nhello\n0\r\n\r\n'],
    ['more data than the size', '5\r\nhello!\r\n0\r\n\r\n'],
    ['a prefix of 0x', '0x5\r\nhello\r\n0\r\n\r\n'],
    ['a sign', '+5\r\nhello\r\n0\r\n\r\n'],
    ['a negative size', '-5\r\nhello\r\n0\r\n\r\n'],
    ['a blank before the size', ' 5\r\nhello\r\n0\r\n\r\n'],
    ['no size', '\r\nhello\r\n0\r\n\r\n'],
    ['a size beyond 2^64', '10000000000000005\r\nhello\r\n0\r\n\r\n'],
    ['a bare LF after the last chunk', '5\r\nhello\r\n0\r\n\n'],
    ['a trailer without a colon', '5\r\nhello\r\n0\r\nX\r\n\r\n'],
    ['Content-Length in the trailer', '5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n'],
    ['Transfer-Encoding in the trailer', '5\r\nhello\r\n0\r\nTransfer-Encoding: x\r\n\r\n'],
    ['extensions of 1 MB', `5;${'a'.repeat(1_000_000)}\r\nhello\r\n0\r\n\r\n`],
    ['a trailer of 1 MB', `5\r\nhello\r\n0\r\nX: ${'a'.repeat(1_000_000)}\r\n\r\n`],
  ])('closes on a chunked body with %s, and what follows is no request', async (_, body) => {
    const before = wire.provider.requests.length;
    const client = await wire.connect();
    client.send(Buffer.concat([head(), Buffer.from(body, 'latin1')]));
    client.send(request('GET /v1/models?smuggled', [wire.auth]));
    for (const { status } of await responsesOn(client, 2)) expect(status).toBeGreaterThanOrEqual(400);
    await client.closed;
    // The call itself may have been on its way when its body broke; then the provider saw it break too.
    const begun = wire.provider.requests.length - before;
    expect(begun).toBeLessThanOrEqual(1);
    if (begun === 1) await expect(wire.provider.requests[before]!.body).rejects.toThrow();
    await wire.expectSound(begun);
  });

  never.each([
    ['extensions', '5;a=b;c="d\\"e"\r\nhello\r\n0;f\r\n\r\n'],
    ['leading zeros and upper case', '0000000A\r\nhellohello\r\n000\r\n\r\n'],
    ['a trailer', '5\r\nhello\r\n0\r\nX-Checksum: 1\r\n\r\n'],
  ])('takes a chunked body with %s and passes on nothing but the data', async (_, body) => {
    const [reply] = await wire.send(Buffer.concat([head(), Buffer.from(body)]));
    expect(reply!.status).toBe(200);
    const { framed } = await wire.provider.requests.at(-1)!.body;
    expect(framed.toString()).toMatch(/^[5a]\r\n(hello)+\r\n0\r\n\r\n$/);
    await wire.expectSound(1);
  });
});

describe('transfer encoding', () => {
  const CHUNKED_BODY = '5\r\nhello\r\n0\r\n\r\n';
  const smuggled = () => request('GET /v1/models?smuggled', [wire.auth]).toString('latin1');

  /** RFC 9112 6.1: only a single final `chunked` tells where a request body ends; this gateway knows no other coding. */
  never.each([
    ['gzip, chunked', ['Transfer-Encoding: gzip, chunked']],
    ['chunked, chunked', ['Transfer-Encoding: chunked, chunked']],
    ['chunked, gzip', ['Transfer-Encoding: chunked, gzip']],
    ['chunked, identity', ['Transfer-Encoding: chunked, identity']],
    ['identity', ['Transfer-Encoding: identity']],
    ['xchunked', ['Transfer-Encoding: xchunked']],
    ['chunkedx', ['Transfer-Encoding: chunkedx']],
    ['x chunked', ['Transfer-Encoding: x chunked']],
    ['a comma before chunked', ['Transfer-Encoding: , chunked']],
    ['a comma after chunked', ['Transfer-Encoding: chunked,']],
    ['a parameter', ['Transfer-Encoding: chunked;a=b']],
    ['quotes', ['Transfer-Encoding: "chunked"']],
    ['an empty value', ['Transfer-Encoding:']],
    ['two lines, both chunked', ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked']],
    ['two lines, gzip and chunked', ['Transfer-Encoding: gzip', 'Transfer-Encoding: chunked']],
    ['two lines, chunked and identity', ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity']],
    ['two lines, the first empty', ['Transfer-Encoding:', 'Transfer-Encoding: chunked']],
    ['a vertical tab before chunked', ['Transfer-Encoding: \x0bchunked']],
    ['a no-break space before chunked', ['Transfer-Encoding: \xa0chunked']],
    ['a space before the colon', ['Transfer-Encoding : chunked']],
    ['a folded value', ['Transfer-Encoding:\r\n chunked']],
  ])('rejects a Transfer-Encoding of %s with 400 and closes', async (_, headers) => {
    const client = await wire.connect();
    client.send(request('POST /v1/chat/completions', [wire.auth, ...headers], CHUNKED_BODY + smuggled()));
    wire.expectRejection(await client.answer(), 400, 'invalid_request');
    await client.closed;
    expect(client.reader.rest.toString('latin1')).toBe('');
    await wire.expectSound(0);
  });

  it('rejects Transfer-Encoding on HTTP/1.0 with 400 and closes', async () => {
    const head = `POST /v1/chat/completions HTTP/1.0\r\nHost: gateway.test\r\n${wire.auth}\r\nConnection: keep-alive\r\n`;
    const client = await wire.connect();
    client.send(`${head}Transfer-Encoding: chunked\r\n\r\n${CHUNKED_BODY}${smuggled()}`);
    wire.expectRejection(await client.answer(), 400, 'invalid_request');
    await client.closed;
    expect(client.reader.rest.toString('latin1')).toBe('');
    await wire.expectSound(0);
  });

  it.each(['Transfer-Encoding: chunked', 'transfer-encoding: CHUNKED', 'Transfer-Encoding: \tchunked '])(
    'takes %j, for codings are case-insensitive and blanks around a value are no part of it',
    async (header) => {
      const [reply] = await wire.send(
        request('POST /v1/chat/completions', [wire.auth, header], CHUNKED_BODY),
      );
      expect([reply!.status, reply!.body.toString()]).toEqual([200, 'hello']);
      await wire.expectSound(1);
    },
  );
});
