import { deferred } from '../support/deferred.js';
import { chunk } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';
import { request } from '../support/raw-client.js';

let wire: Wire;
beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

const CALL = 'POST /v1/chat/completions';

/** How the provider ends its connection: with a FIN, or with a reset as a crashed process does. */
const ENDINGS = ['end', 'resetAndDestroy'] as const;

describe.each(ENDINGS)('a provider that breaks off by %s', (ending) => {
  it.each([
    ['before its head', ''],
    ['in its status line', 'HTTP/1.1 20'],
    ['in its head', 'HTTP/1.1 200 OK\r\nContent-Le'],
    ['after an interim answer', 'HTTP/1.1 103 Early Hints\r\nX-A: b\r\n\r\n'],
  ])('%s is a 502', async (_, bytes) => {
    wire.provider.script = async (req) => {
      await req.body;
      if (bytes === '') req.socket[ending]();
      else req.socket.write(bytes, () => req.socket[ending]());
    };
    const reply = await wire.call(CALL, [], '{}');
    wire.expectRefusal(reply, 502, 'upstream_invalid_response');
    expect(await wire.gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({
      outcome: 'upstream_error',
      status: 502,
      error_code: 'upstream_invalid_response',
      response_bytes: '0',
    });
  });

  it.each([
    ['after its head, in chunks', 'Transfer-Encoding: chunked', ''],
    ['mid-body, in chunks', 'Transfer-Encoding: chunked', chunk('half').toString()],
    ['inside a chunk', 'Transfer-Encoding: chunked', `${chunk('half').toString()}7\r\nhal`],
    ['after its head, with a length', 'Content-Length: 9', ''],
    ['mid-body, with a length', 'Content-Length: 9', 'half'],
    [
      'before the last chunk of a connection it closes',
      'Connection: close\r\nTransfer-Encoding: chunked',
      '',
    ],
    ['short of a length on a connection it closes', 'Connection: close\r\nContent-Length: 9', 'half'],
  ])('%s is seen by the client', async (_, framing, bytes) => {
    wire.provider.script = async (req) => {
      await req.body;
      req.socket.write(`HTTP/1.1 200 OK\r\n${framing}\r\n\r\n${bytes}`);
      await headSeen.promise;
      req.socket[ending]();
    };
    const headSeen = deferred();
    const client = await wire.connect();
    client.send(request(CALL, [wire.auth], '{}'));
    const head = await client.head();
    headSeen.resolve();
    await client.closed;
    // What came, and nothing after it: no last chunk, no appended error.
    expect(client.reader.rest.toString()).toBe(bytes.replace('7\r\nhal', chunk('hal').toString()));
    expect(await wire.gateway.row(head.header('x-gateway-request-id')!)).toMatchObject({
      outcome: 'truncated',
      status: 200,
    });
  });
});

it('a refused connection is a 502 and an unreachable provider', async () => {
  const { url } = wire.provider;
  await wire.provider.stop();
  const reply = await wire.call(CALL, [], '{}');
  wire.expectRefusal(reply, 502, 'upstream_unreachable');
  expect(reply.body.toString()).not.toContain(new URL(url).port);
  expect(await wire.gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({
    outcome: 'upstream_error',
    status: 502,
    error_code: 'upstream_unreachable',
  });
});
