import { request } from '../support/raw-client.js';
import { Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

const smuggled = () => request('GET /v1/models?smuggled', [wire.auth]).toString('latin1');

/** RFC 9112 6.1 and 6.3: the length of these bodies is a matter of opinion, so nobody may have one. */
it.each([
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
])('refuses %s with 400 and closes', async (_, headers) => {
  const client = await wire.connect();
  client.send(request('POST /v1/chat/completions', [wire.auth, ...headers], `hello${smuggled()}`));
  wire.expectRefusal(await client.answer(), 400, 'invalid_request');
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
