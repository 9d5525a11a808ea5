import { setTimeout as pace } from 'node:timers/promises';
import { chunk, LAST_CHUNK } from '../support/raw-provider.js';
import { request } from '../support/raw-client.js';
import { Wire } from '../support/wire.js';

let wire: Wire;
beforeAll(async () => {
  // The time between two bytes is longer than the time for the head, and the whole answer longer than either.
  wire = await Wire.start({ UPSTREAM_HEADERS_TIMEOUT_MS: '300', UPSTREAM_IDLE_TIMEOUT_MS: '1500' });
});
afterAll(() => wire.stop());

const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n';

it('one byte at a time keeps an answer alive for longer than any limit', async () => {
  const bytes = 'tomorrow';
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write(HEAD);
    for (const byte of bytes) {
      await pace(400);
      req.socket.write(chunk(byte));
    }
    req.socket.write(LAST_CHUNK);
  };
  const reply = await wire.call('POST /v1/chat/completions', [], '{}');
  expect(reply.body.toString()).toBe(bytes);
  expect(await wire.gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({
    outcome: 'completed',
  });
});

it.each([
  ['after its head', '', HEAD],
  ['mid-body', chunk('half').toString(), HEAD],
  ['short of its length', 'half', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n'],
])('silence %s breaks the connection on both sides', async (_, bytes, head) => {
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write(head + bytes);
    await req.closed;
  };
  const client = await wire.connect();
  client.send(request('POST /v1/chat/completions', [wire.auth], '{}'));
  const reply = await client.head();
  await client.closed;
  expect(client.reader.rest.toString()).toBe(bytes);
  await wire.provider.requests.at(-1)!.closed;
  expect(await wire.gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({
    outcome: 'upstream_timeout',
    status: 200,
    error_code: 'upstream_timeout',
  });
});
