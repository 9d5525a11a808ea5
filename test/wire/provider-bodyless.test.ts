import { RawClient, request } from '../support/raw-client.js';
import { answer } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';

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
it.each([
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
