import { chunk, LAST_CHUNK } from '../support/raw-provider.js';
import { echo, Wire } from '../support/wire.js';

let wire: Wire;
beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

// RFC 9112 6.1: a server must not send Transfer-Encoding to a client of an earlier version, whatever that client says.
it.each(['', 'TE: chunked\r\n', 'Connection: keep-alive\r\n', 'Connection: TE\r\nTE: trailers, chunked\r\n'])(
  'an HTTP/1.0 client that says %j gets no chunks',
  async (said) => {
    wire.provider.script = async (req) => {
      await req.body;
      req.socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      req.socket.write(chunk('one'));
      req.socket.write(chunk('two'));
      req.socket.write(LAST_CHUNK);
    };
    const [reply] = await wire.send(
      `POST /v1/chat/completions HTTP/1.0\r\n${wire.auth}\r\n${said}Content-Length: 2\r\n\r\n{}`,
    );
    expect(reply!.header('transfer-encoding')).toBeUndefined();
    expect(reply!.header('connection')).toBe('close');
    expect(reply!.body.toString()).toBe('onetwo');
    await wire.expectSound(1);
  },
);

it('is not told to continue, for it does not know the word (RFC 9110 15.2)', async () => {
  wire.provider.script = echo;
  const [reply] = await wire.send(
    `POST /v1/chat/completions HTTP/1.0\r\n${wire.auth}\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}`,
  );
  expect([reply!.status, reply!.body.toString()]).toEqual([200, '{}']);
});

it('passes a length on and closes', async () => {
  wire.provider.script = (req) => {
    req.socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  };
  const [reply] = await wire.send(`GET /v1/models HTTP/1.0\r\n${wire.auth}\r\n\r\n`);
  expect([reply!.header('content-length'), reply!.header('connection'), reply!.body.toString()]).toEqual([
    '2',
    'close',
    'ok',
  ]);
});
