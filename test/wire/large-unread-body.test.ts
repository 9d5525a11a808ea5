import { RawClient, request } from '../support/raw-client.js';
import { answer } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';

let wire: Wire;
beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

const CALL = 'POST /v1/chat/completions';
const MEGABYTE = Buffer.alloc(1_000_000, 'GET /v1/smuggled HTTP/1.1\r\nHost: a\r\n\r\n');
const JUNK = 'Authorization: Bearer junk';

/** Sends megabytes until all are out or the gateway closes; resolves once the socket has taken them. */
async function pour(client: RawClient, count: number): Promise<void> {
  let open = true;
  void client.closed.then(() => (open = false));
  for (let i = 0; i < count && open; i++) {
    if (!client.socket.write(MEGABYTE)) {
      await Promise.race([new Promise((drained) => client.socket.once('drain', drained)), client.closed]);
    }
  }
}

// RFC 9112 9.6: closing while the client still sends would reset the connection, and take the answer with it.
describe.each([
  ['and keeps its connection', '1.1', [], false],
  ['and says it will close', '1.1', ['Connection: close'], true],
  ['over HTTP/1.0', '1.0', [], true],
])('a client that sends 100 MB under a junk key %s', (_, version, headers, closes) => {
  it.each([
    ['with a length', 'Content-Length: 100000000'],
    ['in chunks', 'Transfer-Encoding: chunked'],
  ])('%s can read the 401', async (_framing, framing) => {
    const chunked = framing.startsWith('Transfer');
    // HTTP/1.0 has no chunks, and that is another refusal.
    if (chunked && version === '1.0') return;
    const client = await wire.connect();
    const head = request(CALL, [JUNK, ...headers, framing]).toString('latin1');
    client.send(head.replace('HTTP/1.1', `HTTP/${version}`));
    if (chunked) client.send(`${(100_000_000).toString(16)}\r\n`);
    const poured = pour(client, 100);
    wire.expectRefusal(await client.answer(), 401, 'invalid_api_key');
    await poured;
    if (closes) await client.closed;
    else {
      if (chunked) client.send('\r\n0\r\n\r\n');
      client.send(request(CALL, [wire.auth], 'mine'));
      expect((await client.answer()).body.toString()).toBe('mine');
    }
    expect(client.reader.rest.length).toBe(0);
    client.destroy();
    await wire.expectSound(closes ? 0 : 1);
  });
});

it('a client that reads only once all is sent can read the 401 too', async () => {
  for (const headers of [[], ['Connection: close']]) {
    const client = await wire.connect();
    client.socket.pause();
    client.send(request(CALL, [JUNK, ...headers, 'Content-Length: 20000000']));
    await pour(client, 20);
    client.socket.resume();
    wire.expectRefusal(await client.answer(), 401, 'invalid_api_key');
    client.destroy();
  }
  await wire.expectSound(0);
});

it('call after call', async () => {
  const client = await wire.connect();
  for (let i = 0; i < 3; i++) {
    client.send(request(CALL, [JUNK, 'Content-Length: 5000000']));
    await pour(client, 5);
    wire.expectRefusal(await client.answer(), 401, 'invalid_api_key');
  }
  client.send(request(CALL, [wire.auth], 'mine'));
  expect((await client.answer()).body.toString()).toBe('mine');
  client.destroy();
  await wire.expectSound(1);
});

it.each(['1.1', '1.0'])(
  'an early answer of the provider too, over HTTP/%s and a closing connection',
  async (version) => {
    wire.provider.script = (req) => {
      req.socket.write(answer('413 Content Too Large', [], 'enough'));
    };
    const client = await wire.connect();
    const head = request(CALL, [wire.auth, 'Connection: close', 'Content-Length: 50000000']).toString(
      'latin1',
    );
    client.send(head.replace('HTTP/1.1', `HTTP/${version}`));
    const poured = pour(client, 50);
    const reply = await client.answer();
    expect([reply.status, reply.header('connection'), reply.body.toString()]).toEqual([
      413,
      'close',
      'enough',
    ]);
    await poured;
    await client.closed;
    await wire.expectSound(1);
  },
);
