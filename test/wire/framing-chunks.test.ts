import { request } from '../support/raw-client.js';
import { answersOn, Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

const head = () => request('POST /v1/chat/completions', [wire.auth, 'Transfer-Encoding: chunked']);

/** RFC 9112 7.1: after any of these nobody can say where the body ends. */
it.each([
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
  for (const { status } of await answersOn(client, 2)) expect(status).toBeGreaterThanOrEqual(400);
  await client.closed;
  // The call itself may have been on its way when its body broke; then the provider saw it break too.
  const begun = wire.provider.requests.length - before;
  expect(begun).toBeLessThanOrEqual(1);
  if (begun === 1) await expect(wire.provider.requests[before]!.body).rejects.toThrow();
  await wire.expectSound(begun);
});

it.each([
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
