import { request } from '../support/raw-client.js';
import { Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

const CHUNKED_BODY = '5\r\nhello\r\n0\r\n\r\n';
const smuggled = () => request('GET /v1/models?smuggled', [wire.auth]).toString('latin1');

/** RFC 9112 6.1: only a single final `chunked` tells where a request body ends; this gateway knows no other coding. */
it.each([
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
])('refuses a Transfer-Encoding of %s with 400 and closes', async (_, headers) => {
  const client = await wire.connect();
  client.send(request('POST /v1/chat/completions', [wire.auth, ...headers], CHUNKED_BODY + smuggled()));
  wire.expectRefusal(await client.answer(), 400, 'invalid_request');
  await client.closed;
  expect(client.reader.rest.toString('latin1')).toBe('');
  await wire.expectSound(0);
});

it('refuses Transfer-Encoding on HTTP/1.0 with 400 and closes', async () => {
  const head = `POST /v1/chat/completions HTTP/1.0\r\nHost: gateway.test\r\n${wire.auth}\r\nConnection: keep-alive\r\n`;
  const client = await wire.connect();
  client.send(`${head}Transfer-Encoding: chunked\r\n\r\n${CHUNKED_BODY}${smuggled()}`);
  wire.expectRefusal(await client.answer(), 400, 'invalid_request');
  await client.closed;
  expect(client.reader.rest.toString('latin1')).toBe('');
  await wire.expectSound(0);
});

it.each(['Transfer-Encoding: chunked', 'transfer-encoding: CHUNKED', 'Transfer-Encoding: \tchunked '])(
  'takes %j, for codings are case-insensitive and blanks around a value are no part of it',
  async (header) => {
    const [reply] = await wire.send(request('POST /v1/chat/completions', [wire.auth, header], CHUNKED_BODY));
    expect([reply!.status, reply!.body.toString()]).toEqual([200, 'hello']);
    await wire.expectSound(1);
  },
);
