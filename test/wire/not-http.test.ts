import { randomBytes } from 'node:crypto';
import { answersOn, Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

const TLS_HELLO = Buffer.from('16030100c8010000c40303', 'hex');

it.each([
  ['an HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0'],
  ['a TLS hello', Buffer.concat([TLS_HELLO, randomBytes(200)])],
  ['an SSH greeting', 'SSH-2.0-OpenSSH_9.9\r\n'],
  ['a SOCKS greeting', '\x05\x01\x00'],
  [
    'a PROXY header',
    'PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\nGET /v1/models HTTP/1.1\r\nHost: g\r\nAUTH\r\n\r\n',
  ],
  ['an answer', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'],
  ['SMTP', 'EHLO example.org\r\n'],
  ['NUL bytes', Buffer.alloc(1_000)],
  ['bytes of every value', Buffer.from(Array.from({ length: 256 }, (_, i) => i))],
  ['an endless first line', Buffer.alloc(200_000, 'G')],
  ['Unicode', 'ＧＥＴ /v1/models HTTP/1.1\r\n\r\n'],
])('answers %s with a 400 of ours and closes', async (_, bytes) => {
  const client = await wire.connect();
  client.send(typeof bytes === 'string' ? Buffer.from(bytes.replace('AUTH', wire.auth), 'utf8') : bytes);
  const [reply, second] = await answersOn(client, 2);
  wire.expectRefusal(reply, 400, 'invalid_request');
  expect(reply!.header('connection')).toBe('close');
  expect(second).toBeUndefined();
  await client.closed;
  await wire.expectSound(0);
});
