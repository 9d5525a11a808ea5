import { Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

/** Contract: the reason as the provider sent it; one outside ASCII becomes the standard phrase. */
it.each([
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
