import { deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { noticed, RawClient, request } from '../support/raw-client.js';
import { answer, chunk, LAST_CHUNK } from '../support/raw-provider.js';
import { echo, Wire } from '../support/wire.js';
import { CHAT, essence, once, open } from './once.js';

let wire: Wire;
let auth: string;
beforeAll(async () => {
  wire = await Wire.start({ CLIENT_IDLE_TIMEOUT_MS: '5000', MAX_BODY_BYTES: '1000000' });
  auth = `Authorization: Bearer ${await wire.gateway.createKey({ endpoints: 'all', idempotency: 'replay' })}`;
});
afterAll(() => wire.stop());

let names = 0;
let headers: string[];
let before: number;
beforeEach(() => {
  headers = [auth, `Idempotency-Key: framing-${++names}`];
  before = wire.provider.requests.length;
  wire.provider.script = echo;
});
const calls = () => wire.provider.requests.length - before;
const chunked = (body: string | Buffer) => Buffer.concat([chunk(body), Buffer.from(LAST_CHUNK)]);

it.each([
  ['announced and streamed', 300_000, false],
  ['chunked', 300_000, true],
  ['chunked and small', 10, true],
  ['empty', 0, false],
  ['empty and chunked', 0, true],
])('a body that is %s is compared whole', async (_, length, isChunked) => {
  const send = (bytes: Buffer) =>
    isChunked
      ? once(
          wire.gateway,
          [...headers, 'Transfer-Encoding: chunked'],
          bytes.length > 0 ? chunked(bytes) : LAST_CHUNK,
        )
      : once(wire.gateway, bytes.length === 0 ? [...headers, 'Content-Length: 0'] : headers, bytes);
  const body = Buffer.alloc(length, 'b');
  const first = await send(body);
  const repeat = await send(body);
  expect([first.status, repeat.header('idempotent-replayed')]).toEqual([200, 'true']);
  expect(essence(repeat)).toEqual(essence(first));
  const last = Buffer.concat([body.subarray(0, -1), Buffer.from('!')]);
  wire.expectRejection(await send(last), 422, 'idempotency_mismatch');
  expect(calls()).toBe(1);
});

it('a first call and its retries may each wait for the word to send their bodies', async () => {
  const goOn = deferred();
  wire.provider.script = async (req) => {
    await goOn.promise;
    await echo(req);
  };
  const lines = [...headers, 'Expect: 100-continue', 'Content-Length: 4'];
  const clients: RawClient[] = [];
  for (let i = 0; i < 2; i++) {
    const client = await RawClient.connect(wire.gateway.port);
    client.send(request(CHAT, lines));
    expect((await client.head()).status).toBe(100);
    client.send('body');
    clients.push(client);
    await eventually(() => calls() === 1);
  }
  goOn.resolve();
  for (const client of clients) expect((await client.answer()).body.toString()).toBe('body');
  expect(calls()).toBe(1);
});

it('duplicates behind each other on one connection are answered in turn', async () => {
  wire.provider.script = async (req) => {
    // The duplicates behind it have arrived.
    await noticed(wire.gateway);
    await echo(req);
  };
  const client = await RawClient.connect(wire.gateway.port);
  client.send(Buffer.concat([1, 2, 3].map(() => request(CHAT, headers, Buffer.alloc(200_000, 'p')))));
  for (let i = 0; i < 3; i++) expect((await client.answer()).body.length).toBe(200_000);
  expect(calls()).toBe(1);
  client.destroy();
});

it('a client of HTTP/1.0 gets what was streamed, ended by its connection', async () => {
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write(
      Buffer.concat([
        Buffer.from(
          'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTrailer: X-T\r\nTransfer-Encoding: chunked\r\n\r\n',
        ),
        chunk('old'),
        Buffer.from('0\r\nX-T: 1\r\n\r\n'),
      ]),
    );
  };
  const seen: string[] = [];
  for (let i = 0; i < 2; i++) {
    const client = await RawClient.connect(wire.gateway.port);
    let bytes = '';
    client.socket.on('data', (data) => (bytes += data.toString('latin1')));
    client.send(`${CHAT} HTTP/1.0\r\n${headers.join('\r\n')}\r\nContent-Length: 2\r\n\r\n{}`);
    await client.closed;
    seen.push(bytes);
  }
  for (const bytes of seen) {
    expect(bytes).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(bytes).toMatch(/\r\n\r\nold$/);
    expect(bytes).not.toMatch(/transfer-encoding|x-t/i);
  }
  expect(seen[1]).toContain('idempotent-replayed: true');
  expect((await once(wire.gateway, headers)).body.toString()).toBe('old');
  expect(calls()).toBe(1);
});

it('bytes outside ASCII in reason and headers come again as they came first', async () => {
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write(
      Buffer.from(
        'HTTP/1.1 200 Tr\xe8s bien\r\nContent-Disposition: caf\xe9 "\x80\xff"\r\nContent-Length: 2\r\n\r\nok',
        'latin1',
      ),
    );
  };
  const [first, repeat] = [await once(wire.gateway, headers), await once(wire.gateway, headers)];
  expect(first.header('content-disposition')).toBe('caf\xe9 "\x80\xff"');
  expect(repeat.header('content-disposition')).toBe('caf\xe9 "\x80\xff"');
  expect(repeat.head.split('\r\n')[0]).toBe('HTTP/1.1 200 OK');
  expect(calls()).toBe(1);
});

never('no header that holds the secret of the provider is kept', async () => {
  wire.provider.script = async (req) => {
    await req.body;
    const secret = req.headers.find(([name]) => name === 'Authorization')![1].slice('Bearer '.length);
    req.socket.write(answer('200 OK', [`Content-Echo: ${secret}`, `X-Request-Id: ${secret}`], 'ok'));
  };
  for (let i = 0; i < 2; i++) {
    const reply = await once(wire.gateway, headers);
    expect([reply.header('content-echo'), reply.header('x-request-id')]).toEqual([undefined, undefined]);
  }
});

never('a response without a body that announces one is given again without one', async () => {
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write('HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n');
  };
  const client = await RawClient.connect(wire.gateway.port);
  for (let i = 0; i < 3; i++) {
    client.send(request(CHAT, headers, '{}'));
    const reply = await client.answer();
    expect([reply.status, reply.header('idempotent-replayed')]).toEqual([304, i === 0 ? undefined : 'true']);
  }
  client.destroy();
  expect(calls()).toBe(1);
});

it('a retry is held to the same bounds as a first call', async () => {
  await once(wire.gateway, headers, 'body');
  const large = await open(
    wire.gateway,
    [...headers, 'Transfer-Encoding: chunked'],
    chunk(Buffer.alloc(1_100_000)),
  );
  wire.expectRejection(await large.answer(), 413, 'request_too_large');
  const stalled = await open(wire.gateway, [...headers, 'Content-Length: 4'], 'bo');
  wire.expectRejection(await stalled.answer(), 408, 'request_timeout');
  expect((await once(wire.gateway, headers, 'body')).header('idempotent-replayed')).toBe('true');
  expect(calls()).toBe(1);
});
