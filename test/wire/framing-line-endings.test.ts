import { Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

/** RFC 9112 2.2, 5.1, 5.2: what two hops could cut into lines, names and values differently. AUTH holds a good key. */
it.each([
  ['a bare LF after the request line', 'GET /v1/models HTTP/1.1\nHost: g\r\nAUTH\r\n\r\n'],
  ['a bare LF after a header', 'GET /v1/models HTTP/1.1\r\nHost: g\nAUTH\r\n\r\n'],
  ['a bare LF for the empty line', 'GET /v1/models HTTP/1.1\r\nHost: g\r\nAUTH\r\n\n'],
  ['bare LFs everywhere', 'GET /v1/models HTTP/1.1\nHost: g\nAUTH\n\n'],
  ['a bare CR in a value', 'GET /v1/models HTTP/1.1\r\nHost: g\r\nX: a\rX-Smuggled: b\r\nAUTH\r\n\r\n'],
  ['a bare CR after a header', 'GET /v1/models HTTP/1.1\r\nHost: g\rAUTH\r\n\r\n'],
  ['two CRs', 'GET /v1/models HTTP/1.1\r\nHost: g\r\r\nAUTH\r\n\r\n'],
  ['a folded header', 'GET /v1/models HTTP/1.1\r\nHost: g\r\nX: a\r\n b\r\nAUTH\r\n\r\n'],
  ['a header folded by a tab', 'GET /v1/models HTTP/1.1\r\nHost: g\r\nX: a\r\n\tb\r\nAUTH\r\n\r\n'],
  ['a folded Authorization', 'GET /v1/models HTTP/1.1\r\nHost: g\r\nAUTH\r\n x\r\n\r\n'],
  ['a blank before the first header', 'GET /v1/models HTTP/1.1\r\n Host: g\r\nAUTH\r\n\r\n'],
  ['a blank before the colon', 'GET /v1/models HTTP/1.1\r\nHost : g\r\nAUTH\r\n\r\n'],
  ['a tab before the colon', 'GET /v1/models HTTP/1.1\r\nHost: g\r\nX\t: a\r\nAUTH\r\n\r\n'],
  ['a header without a colon', 'GET /v1/models HTTP/1.1\r\nHost: g\r\nX\r\nAUTH\r\n\r\n'],
  ['a header without a name', 'GET /v1/models HTTP/1.1\r\nHost: g\r\n: a\r\nAUTH\r\n\r\n'],
  ['a name that is no token', 'GET /v1/models HTTP/1.1\r\nHost: g\r\nX(a): b\r\nAUTH\r\n\r\n'],
  ['a name outside ASCII', 'GET /v1/models HTTP/1.1\r\nHost: g\r\nX\xe9: b\r\nAUTH\r\n\r\n'],
  ['NUL in a name', 'GET /v1/models HTTP/1.1\r\nHost: g\r\nX\0: b\r\nAUTH\r\n\r\n'],
  ['NUL in a value', 'GET /v1/models HTTP/1.1\r\nHost: g\r\nX: a\0b\r\nAUTH\r\n\r\n'],
  ['a control byte in a value', 'GET /v1/models HTTP/1.1\r\nHost: g\r\nX: a\x01b\r\nAUTH\r\n\r\n'],
  ['DEL in a value', 'GET /v1/models HTTP/1.1\r\nHost: g\r\nX: a\x7fb\r\nAUTH\r\n\r\n'],
  ['a blank after the version', 'GET /v1/models HTTP/1.1 \r\nHost: g\r\nAUTH\r\n\r\n'],
  ['a word after the version', 'GET /v1/models HTTP/1.1 x\r\nHost: g\r\nAUTH\r\n\r\n'],
  ['a lower-case version', 'GET /v1/models http/1.1\r\nHost: g\r\nAUTH\r\n\r\n'],
  ['HTTP/1.2', 'GET /v1/models HTTP/1.2\r\nHost: g\r\nAUTH\r\n\r\n'],
  ['HTTP/1.10', 'GET /v1/models HTTP/1.10\r\nHost: g\r\nAUTH\r\n\r\n'],
  ['HTTP/2.0', 'GET /v1/models HTTP/2.0\r\nHost: g\r\nAUTH\r\n\r\n'],
  ['HTTP/0.9', 'GET /v1/models HTTP/0.9\r\nHost: g\r\nAUTH\r\n\r\n'],
  ['a request line of HTTP/0.9', 'GET /v1/models\r\nAUTH\r\n\r\n'],
  ['a method after a blank', ' GET /v1/models HTTP/1.1\r\nHost: g\r\nAUTH\r\n\r\n'],
  ['no target', 'GET HTTP/1.1\r\nHost: g\r\nAUTH\r\n\r\n'],
])('refuses %s with 400 and closes', async (_, bytes) => {
  const client = await wire.connect();
  client.send(bytes.replace('AUTH', wire.auth));
  const reply = await client.answer();
  expect(['invalid_request', 'invalid_path']).toContain(reply.header('x-gateway-error'));
  wire.expectRefusal(reply, 400, reply.header('x-gateway-error')!);
  await client.closed;
  await wire.expectSound(0);
});

it('takes empty lines before a request for none of it (RFC 9112 2.2)', async () => {
  const [reply] = await wire.send(`\r\n\r\nGET /v1/models HTTP/1.1\r\nHost: g\r\n${wire.auth}\r\n\r\n`);
  expect(reply!.status).toBe(200);
  await wire.expectSound(1);
});
