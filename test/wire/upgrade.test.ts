import { request } from '../support/raw-client.js';
import { Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

/** RFC 9110 7.8: a server may ignore Upgrade, and a proxy does not pass it on. */
it.each([
  ['a WebSocket', ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13']],
  ['h2c', ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__']],
  ['Upgrade without Connection', ['Upgrade: h2c']],
])('serves a request that asks for %s as plain HTTP/1.1', async (_, headers) => {
  for (const [line, body] of [
    ['GET /v1/models', ''],
    ['POST /v1/chat/completions', '{"a":1}'],
  ] as const) {
    const client = await wire.connect();
    const asking = request(line, [wire.auth, ...headers], body);
    const next = request(`${line}?next`, [wire.auth], body);
    // What follows in the same packet is lost by Node, so the connection must say that it ends, and end.
    client.send(Buffer.concat([asking, next.subarray(0, 10)]));
    const reply = await client.answer();
    expect([reply.status, reply.body.toString(), reply.header('connection')]).toEqual([200, body, 'close']);
    client.send(next.subarray(10));
    await client.closed;
    expect(client.reader.rest).toHaveLength(0);
    expect(wire.provider.requests.at(-1)!.head).not.toMatch(/upgrade|http2-settings|h2c/i);
    await wire.expectSound(1);
  }
});

it('does not pass on a protocol switch that nobody asked for', async () => {
  wire.provider.script = (req) => {
    req.socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nbytes');
  };
  const reply = await wire.call('GET /v1/models', ['Connection: Upgrade', 'Upgrade: x']);
  wire.expectRefusal(reply, 502, 'upstream_invalid_response');
  await wire.expectSound(1);
});
