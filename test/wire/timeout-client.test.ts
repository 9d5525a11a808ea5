import { deferred } from '../support/deferred.js';
import { never } from '../support/never.js';
import { request } from '../support/raw-client.js';
import type { ReceivedRequest } from '../support/raw-provider.js';
import { eventually } from '../support/eventually.js';
import { echo, Wire } from '../support/wire.js';

let wire: Wire;
beforeAll(async () => {
  wire = await Wire.start({ CLIENT_IDLE_TIMEOUT_MS: '2000' });
});
afterAll(() => wire.stop());
beforeEach(() => {
  wire.provider.script = echo;
});

const CALL = 'POST /v1/chat/completions';
const rows = () => wire.gateway.database.query<{ outcome: string }>('SELECT * FROM request_log');

/** A call whose client sends a part of its body and then nothing. */
async function stalled(headers: string[], part: string) {
  const client = await wire.connect();
  client.send(request(CALL, [wire.auth, ...headers], part));
  const reply = await client.answer();
  await client.closed;
  return reply;
}

never('a short upload that stalls is a 408, and was never forwarded', async () => {
  const [seen, before] = [wire.provider.requests.length, (await rows()).length];
  const reply = await stalled(['Content-Length: 10'], 'half');
  wire.expectRejection(reply, 408, 'request_timeout');
  expect(reply.header('connection')).toBe('close');
  await wire.expectSound(0);
  expect(wire.provider.requests.length).toBe(seen + 1);
  await eventually(async () => (await rows()).length === before + 1);
});

it.each([
  ['with a length', ['Content-Length: 1000000'], 'half'],
  ['in chunks', ['Transfer-Encoding: chunked'], '4\r\nhalf\r\n'],
])(
  'an upload %s that stalls while it is forwarded is a 408 and leaves the provider',
  async (_, headers, part) => {
    const reply = await stalled(headers, part);
    wire.expectRejection(reply, 408, 'request_timeout');
    await wire.provider.requests.at(-1)!.closed;
    expect(await wire.gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({
      outcome: 'client_error',
      status: 408,
      error_code: 'request_timeout',
      request_bytes: '4',
    });
    await wire.expectSound(1);
  },
);

it('a stalled upload behind another call on its connection is a 408 too', async () => {
  const client = await wire.connect();
  client.send(request('GET /v1/models', [wire.auth]));
  client.send(request(CALL, [wire.auth, 'Content-Length: 10'], 'half'));
  expect((await client.answer()).status).toBe(200);
  wire.expectRejection(await client.answer(), 408, 'request_timeout');
  await client.closed;
  await wire.expectSound(1);
});

it.each([
  ['its head', '', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'],
  ['its body', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n', 'ok'],
])('a client that waits for %s is not idle, not even behind another call', async (_, first, last) => {
  const release = deferred();
  wire.provider.script = async (req: ReceivedRequest) => {
    if (!req.head.includes('X-Slow: 1')) return echo(req);
    await req.body;
    if (first !== '') req.socket.write(first);
    await release.promise;
    req.socket.write(last);
  };
  const alone = await wire.connect();
  alone.send(request(CALL, [wire.auth, 'X-Slow: 1'], '{}'));
  const behind = await wire.connect();
  behind.send(request('GET /v1/models', [wire.auth]));
  behind.send(request(CALL, [wire.auth, 'X-Slow: 1', 'Transfer-Encoding: chunked'], '2\r\n{}\r\n0\r\n\r\n'));
  expect((await behind.answer()).status).toBe(200);
  // Another client has used up the whole idle time by now.
  expect((await stalled(['Content-Length: 10'], 'half')).status).toBe(408);
  release.resolve();
  for (const client of [alone, behind]) {
    expect((await client.answer()).body.toString()).toBe('ok');
    client.destroy();
  }
  await wire.expectSound(3);
});
