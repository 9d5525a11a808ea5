import { type AddressInfo, createServer, type Socket } from 'node:net';
import { deferred } from '../support/deferred.js';
import { timePasses } from '../support/eventually.js';
import { startTestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { RawClient, request } from '../support/raw-client.js';
import { chunk, LAST_CHUNK, type ReceivedRequest } from '../support/raw-provider.js';
import { UnacceptingPort } from '../support/unaccepting-port.js';
import { Wire } from '../support/wire.js';

describe('connecting', () => {
  const SETTINGS = { UPSTREAM_CONNECT_TIMEOUT_MS: '3000' };
  const CALL = 'POST /v1/chat/completions';

  let unaccepting: UnacceptingPort;
  beforeAll(async () => {
    unaccepting = await UnacceptingPort.open();
  });
  afterAll(() => unaccepting.close());

  async function callThrough(url: string) {
    const gateway = await startTestGateway({ ...SETTINGS, PROVIDER_URL: url });
    const client = await RawClient.connect(gateway.port);
    client.send(request(CALL, [`Authorization: Bearer ${gateway.key}`], '{}'));
    const reply = await client.answer();
    client.destroy();
    const row = await gateway.row(reply.header('x-gateway-request-id')!);
    await gateway.stop();
    return { reply, row };
  }

  const UNREACHABLE = { outcome: 'upstream_error', status: 502, error_code: 'upstream_unreachable' };

  it('a connection that is never established is a 502, and its time is no other phase’s', async () => {
    // Meanwhile a call with the same setting waits at a provider that thinks.
    const release = deferred();
    const arrived = deferred();
    const wire = await Wire.start(SETTINGS);
    wire.provider.script = async (req) => {
      await req.body;
      arrived.resolve();
      await release.promise;
      req.socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    };
    const thinking = wire.call(CALL, [], '{}');
    await arrived.promise;

    const { reply, row } = await callThrough(`http://127.0.0.1:${unaccepting.port}`);
    wire.expectRejection(reply, 502, 'upstream_unreachable');
    expect(row).toMatchObject(UNREACHABLE);

    release.resolve();
    expect((await thinking).body.toString()).toBe('ok');
    await wire.stop();
  });

  never('a TLS handshake that is never answered is a 502', async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket.on('error', () => {})));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const { reply, row } = await callThrough(`https://127.0.0.1:${(silent.address() as AddressInfo).port}`);
    expect([reply.status, reply.header('x-gateway-error')]).toEqual([502, 'upstream_unreachable']);
    expect(row).toMatchObject(UNREACHABLE);
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => silent.close(resolve));
  });
});

describe('head of the response', () => {
  let wire: Wire;
  beforeAll(async () => {
    wire = await Wire.start({ UPSTREAM_HEADERS_TIMEOUT_MS: '2000' });
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
    wire.expectRejection(reply, 504, 'upstream_timeout');
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

  it('interim responses do not extend it', async () => {
    provide(async (req) => {
      await req.body;
      for (let i = 0; i < 15; i++) {
        req.socket.write('HTTP/1.1 102 Processing\r\n\r\n');
        await timePasses(200, 'the interim responses take longer than the limit');
      }
      req.socket.write(`${OK}ok`);
    });
    const reply = await wire.call(CALL, [], '{}');
    wire.expectRejection(reply, 504, 'upstream_timeout');
    await wire.provider.requests.at(-1)!.closed;
    expect(await wire.gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({
      outcome: 'upstream_timeout',
      status: 504,
      error_code: 'upstream_timeout',
    });
  });

  it('nor does it run while the upload goes on where they come before its end', async () => {
    const heads = deferred();
    provide(async (req) => {
      req.socket.write('HTTP/1.1 102 Processing\r\n\r\n');
      heads.resolve();
      await req.body;
      if (req.head.includes('X-Never: 1')) await req.closed;
      else req.socket.write(`${OK}ok`);
    });
    for (const [headers, status] of [
      [[], 200],
      [['X-Never: 1'], 504],
    ] as const) {
      const client = await wire.connect();
      client.send(request(CALL, [wire.auth, ...headers, 'Transfer-Encoding: chunked'], '1\r\na\r\n'));
      await heads.promise;
      expect((await wire.call(CALL, SILENT, '{}')).status).toBe(504);
      client.send('1\r\nb\r\n0\r\n\r\n');
      expect((await client.answer()).status).toBe(status);
      client.destroy();
    }
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
    wire.expectRejection(reply, 504, 'upstream_timeout');
    expect(await wire.gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({
      outcome: 'upstream_timeout',
      status: 504,
    });
  });
});

describe('body of the response', () => {
  let wire: Wire;
  beforeAll(async () => {
    // The time between two bytes is longer than the time for the head, and the whole answer longer than either.
    wire = await Wire.start({ UPSTREAM_HEADERS_TIMEOUT_MS: '2000', UPSTREAM_IDLE_TIMEOUT_MS: '4000' });
  });
  afterAll(() => wire.stop());

  const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n';

  it('one byte at a time keeps a response alive for longer than any limit', async () => {
    const bytes = 'the day after';
    wire.provider.script = async (req) => {
      await req.body;
      req.socket.write(HEAD);
      for (const byte of bytes) {
        await timePasses(400, 'the response takes longer than any limit');
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
});
