import { Wire } from '../support/wire.js';

let wire: Wire;
beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

const OK = 'HTTP/1.1 200 OK\r\n';
const END = 'Content-Length: 2\r\n\r\nok';

it.each([
  ['is no HTTP', 'SSH-2.0-OpenSSH_9.6\r\n\r\n'],
  ['is an HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['is a TLS alert', Buffer.from('15030300020228', 'hex')],
  ['has a status of 099', `HTTP/1.1 099 X\r\n${END}`],
  ['has a status of 099, and the provider waits', 'HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n'],
  ['has a status of two digits', `HTTP/1.1 99 X\r\n${END}`],
  ['has a status of four digits', `HTTP/1.1 2000 X\r\n${END}`],
  ['is an unasked 100', `HTTP/1.1 100 Continue\r\n\r\n${OK}${END}`],
  ['is an unasked 101', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'],
  ['has a header without a colon', `${OK}Nonsense\r\n${END}`],
  ['has a space before a colon', `${OK}X-A : b\r\n${END}`],
  ['has a NUL in a header', `${OK}X-A: a\0b\r\n${END}`],
  ['has two lengths', `${OK}Content-Length: 3\r\n${END}`],
  ['has a length that is no number', `${OK}Content-Length: two\r\n\r\nok`],
  ['has a negative length', `${OK}Content-Length: -2\r\n\r\nok`],
  ['has an overflowing length', `${OK}Content-Length: 99999999999999999999999\r\n\r\nok`],
  ['has a length and chunks', `${OK}Transfer-Encoding: chunked\r\n${END}`],
  ['has another transfer coding', `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`],
  ['has a transfer coding without chunks', `${OK}Transfer-Encoding: gzip\r\n\r\nok`],
  ['has more headers than fit', `${OK}X-A: ${'a'.repeat(70_000)}\r\n${END}`],
])('answers 502 when what the provider sends %s, and lives', async (_, bytes) => {
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write(bytes);
    await req.closed;
  };
  const reply = await wire.call('POST /v1/chat/completions', [], '{}');
  wire.expectRefusal(reply, 502, 'upstream_invalid_response');
  expect(await wire.gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({
    outcome: 'upstream_error',
    status: 502,
    error_code: 'upstream_invalid_response',
    response_bytes: '0',
  });
  await wire.expectSound(1);
});

it.each([
  ['a chunk size that is none', 'Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n'],
  ['a chunk longer than its size', 'Transfer-Encoding: chunked\r\n\r\n4\r\nhalfway\r\n0\r\n\r\n'],
])('breaks off when the provider sends %s', async (_, bytes) => {
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write(`${OK}${bytes}`);
    await req.closed;
  };
  const [reply] = await wire.send(
    `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n${wire.auth}\r\nContent-Length: 2\r\n\r\n{}`,
  );
  expect(reply).toBeUndefined();
  await wire.expectSound(1);
});

it.each(['200', '299', '418', '529', '600', '999'])('passes on a status of %s', async (status) => {
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write(`HTTP/1.1 ${status}\r\n${END}`);
  };
  const reply = await wire.call('POST /v1/chat/completions', [], '{}');
  expect([reply.head.split('\r\n')[0]!.trimEnd(), reply.body.toString()]).toEqual([
    `HTTP/1.1 ${status}`,
    'ok',
  ]);
  await wire.expectSound(1);
});
