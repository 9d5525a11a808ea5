import { deferred } from '../support/deferred.js';
import { request } from '../support/raw-client.js';
import type { ReceivedRequest } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';

let wire: Wire;
beforeAll(async () => {
  wire = await Wire.start({ UPSTREAM_HEADERS_TIMEOUT_MS: '300' });
});
afterAll(() => wire.stop());

const CALL = 'POST /v1/chat/completions';
const SILENT = ['X-Silent: 1'];
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n';

/** The provider says nothing to calls marked so, and does `script` for the others. */
function provide(script: (req: ReceivedRequest) => Promise<void>): void {
  wire.provider.script = (req) => (req.head.includes(SILENT[0]!) ? req.closed : script(req));
}

it('a provider that is silent is a 504 and is left', async () => {
  provide(() => Promise.reject(new Error('not called')));
  const reply = await wire.call(CALL, SILENT, '{}');
  wire.expectRefusal(reply, 504, 'upstream_timeout');
  await wire.provider.requests.at(-1)!.closed;
  expect(await wire.gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({
    outcome: 'upstream_timeout',
    status: 504,
    error_code: 'upstream_timeout',
  });
});

it('the time for the head does not run during the body', async () => {
  const release = deferred();
  provide(async (req) => {
    await req.body;
    req.socket.write(OK);
    await release.promise;
    req.socket.write('ok');
  });
  const pending = wire.call(CALL, [], '{}');
  // A later call has used up the whole time by now.
  expect((await wire.call(CALL, SILENT, '{}')).status).toBe(504);
  release.resolve();
  expect((await pending).body.toString()).toBe('ok');
});

it('nor while the upload goes on', async () => {
  const heads = deferred();
  provide(async (req) => {
    heads.resolve();
    expect((await req.body).bytes.toString()).toBe('abc');
    req.socket.write(`${OK}ok`);
  });
  const client = await wire.connect();
  client.send(request(CALL, [wire.auth, 'Transfer-Encoding: chunked']));
  client.send('1\r\na\r\n');
  await heads.promise;
  expect((await wire.call(CALL, SILENT, '{}')).status).toBe(504);
  client.send('1\r\nb\r\n');
  expect((await wire.call(CALL, SILENT, '{}')).status).toBe(504);
  client.send('1\r\nc\r\n0\r\n\r\n');
  expect((await client.answer()).body.toString()).toBe('ok');
  client.destroy();
});

it('but a provider that takes no more of the upload is a 504', async () => {
  provide(async (req) => {
    req.socket.pause();
    await req.closed;
  });
  const client = await wire.connect();
  client.send(request(CALL, [wire.auth, 'Content-Length: 50000000'], Buffer.alloc(50_000_000)));
  const reply = await client.answer();
  client.destroy();
  wire.expectRefusal(reply, 504, 'upstream_timeout');
  expect(await wire.gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({
    outcome: 'upstream_timeout',
    status: 504,
  });
});
