import { deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';
import { request } from '../support/raw-client.js';
import { answer } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';

let wire: Wire;
beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

const BODY = Buffer.alloc(1_000_000, 'POST /v1/smuggled HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n');
const LENGTH = [`Content-Length: ${BODY.length}`];
const CHUNKED = ['Transfer-Encoding: chunked'];
const framed = (bytes: Buffer, headers: string[]) =>
  headers === CHUNKED
    ? Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
    : bytes;

// RFC 9112 9.3: a server may answer before it has read the body.
describe.each([
  ['413 Content Too Large', LENGTH],
  ['413 Content Too Large', CHUNKED],
  ['200 OK', LENGTH],
  ['200 OK', CHUNKED],
])('a provider that answers %s early to a body with %s', (status, framing) => {
  it('is heard, and the rest of the body becomes nobody’s request', async () => {
    const answered = deferred();
    wire.provider.script = (req) => {
      req.socket.write(answer(status, ['X-Early: 1'], 'enough'));
      answered.resolve();
    };
    const client = await wire.connect();
    client.send(request('POST /v1/chat/completions', [wire.auth, ...framing]));
    client.send(framed(BODY.subarray(0, 500_000), framing));
    await answered.promise;
    const reply = await client.answer();
    expect([reply.head.split('\r\n')[0], reply.body.toString()]).toEqual([`HTTP/1.1 ${status}`, 'enough']);
    expect(await wire.gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({
      outcome: 'completed',
      status: Number(status.slice(0, 3)),
      response_bytes: '6',
    });

    // The client goes on with its body and then with its next call on the same connection.
    wire.provider.script = (req) => {
      req.socket.write(answer('200 OK', [], 'next'));
    };
    client.send(framed(BODY.subarray(500_000), framing));
    if (framing === CHUNKED) client.send('0\r\n\r\n');
    client.send(request('GET /v1/models', [wire.auth]));
    expect((await client.answer()).body.toString()).toBe('next');
    client.destroy();
    await wire.expectSound(2);
  });

  it('and closes is heard too, and its answer is whole', async () => {
    wire.provider.script = (req) => {
      req.socket.end(answer(status, ['Connection: close'], 'enough'));
    };
    const client = await wire.connect();
    client.send(request('POST /v1/chat/completions', [wire.auth, ...framing]));
    client.send(framed(BODY.subarray(0, 100), framing));
    const reply = await client.answer();
    client.destroy();
    expect(reply.body.toString()).toBe('enough');
    await eventually(() => wire.gateway.row(reply.header('x-gateway-request-id')!));
    await wire.expectSound(1);
  });
});
