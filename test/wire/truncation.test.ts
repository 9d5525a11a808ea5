import { deferred } from '../support/deferred.js';
import { never } from '../support/never.js';
import { chunk } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';

let wire: Wire;
beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

const head = (version: string) =>
  `POST /v1/chat/completions HTTP/${version}\r\nHost: a\r\n${wire.auth}\r\nContent-Length: 2\r\n\r\n{}`;

/** Sends a call whose answer breaks off after `half`, and tells how the connection of the client ended. */
async function cut(version: string, framing: string, half: string | Buffer) {
  const halfSeen = deferred();
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write(`HTTP/1.1 200 OK\r\n${framing}\r\n\r\n`);
    req.socket.write(half);
    await halfSeen.promise;
    req.socket.resetAndDestroy();
  };
  const client = await wire.connect();
  let reset = false;
  client.socket.on('error', (error: NodeJS.ErrnoException) => (reset = error.code === 'ECONNRESET'));
  client.send(head(version));
  const reply = await client.head();
  while (!client.reader.rest.includes('half')) await new Promise((more) => client.socket.once('data', more));
  halfSeen.resolve();
  await client.closed;
  const row = await wire.gateway.row(reply.header('x-gateway-request-id')!);
  expect(row).toMatchObject({ outcome: 'truncated', status: 200, response_bytes: '4' });
  return { reply, reset, rest: client.reader.rest.toString('latin1') };
}

never('in chunks: the last chunk never comes', async () => {
  const { reply, rest } = await cut('1.1', 'Transfer-Encoding: chunked', chunk('half'));
  expect(reply.header('transfer-encoding')).toBe('chunked');
  expect(rest).toBe('4\r\nhalf\r\n');
});

never.each(['1.1', '1.0'])('with a length, to HTTP/%s: bytes are missing', async (version) => {
  const { reply, rest } = await cut(version, 'Content-Length: 9', 'half');
  expect(reply.header('content-length')).toBe('9');
  expect(rest).toBe('half');
});

it('in chunks, to HTTP/1.0: the connection is reset, for its end would mean the end of the response', async () => {
  const { reply, rest, reset } = await cut('1.0', 'Transfer-Encoding: chunked', chunk('half'));
  expect([reply.header('transfer-encoding'), reply.header('content-length')]).toEqual([undefined, undefined]);
  expect(rest).toBe('half');
  expect(reset).toBe(true);
});

never(
  'behind another response on the same connection: that one is whole, this one is cut short',
  async () => {
    wire.provider.script = async (req) => {
      await req.body;
      if (req.head.startsWith('POST'))
        req.socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf', () =>
          req.socket.resetAndDestroy(),
        );
      else req.socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole');
    };
    const client = await wire.connect();
    client.send(`GET /v1/models HTTP/1.1\r\nHost: a\r\n${wire.auth}\r\n\r\n${head('1.1')}`);
    expect((await client.answer()).body.toString()).toBe('whole');
    await client.closed;
    expect(client.reader.rest.toString('latin1')).not.toMatch(/HTTP\/1\.1 200 OK[^]*half./);
  },
);
