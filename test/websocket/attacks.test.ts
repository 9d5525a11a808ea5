import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { deflateRawSync } from 'node:zlib';
import { MessageInflater } from '../../src/proxy/websocket/message-inflater.js';
import { eventually } from '../support/eventually.js';
import { PROVIDER_KEY, startTestGateway, type TestGateway } from '../support/gateway.js';
import { RawClient } from '../support/raw-client.js';
import { WsClient, WsProvider } from './ws-provider.js';

const REALTIME = '/v1/realtime?model=gpt-realtime';

let provider: WsProvider;
let gateway: TestGateway;
beforeAll(async () => {
  provider = await WsProvider.start();
  gateway = await startTestGateway({ PROVIDER_URL: provider.url });
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});

interface Issued {
  id: string;
  key: string;
}

let names = 0;
const issue = (members: object = {}) =>
  gateway.admin<Issued>('POST', '/keys', {
    team: 'default',
    name: `attack-${++names}`,
    websockets: true,
    ...members,
  });

async function open(key: string, options: object = {}, path = REALTIME): Promise<WsClient> {
  const client = WsClient.connect(gateway.url, path, { authorization: `Bearer ${key}` }, options);
  await client.opened;
  return client;
}

describe('a second request behind the handshake', () => {
  const head = (key: string) =>
    [
      'GET /v1/responses HTTP/1.1',
      'Host: g',
      `Authorization: Bearer ${key}`,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      '\r\n',
    ].join('\r\n');

  it.each([
    ['a request', 'GET /v1/models HTTP/1.1\r\nHost: g\r\n\r\n'],
    ['a frame', '\x81\x82\0\0\0\0hi'],
    ['a part of a frame', '\x81'],
  ])('opens nothing: %s in the same packet', async (_, behind) => {
    const { key } = await issue();
    const opened = provider.handshakes.length;
    // The key is cached or not: with a look-up, the rest has arrived when the handshake is checked.
    for (let i = 0; i < 2; i++) {
      const client = await RawClient.connect(gateway.port);
      client.send(head(key) + behind);
      const reply = await client.answer();
      expect([reply.status, reply.header('x-gateway-error')]).toEqual([400, 'invalid_request']);
      await client.closed;
    }
    expect(provider.sockets.slice(opened).every(({ readyState }) => readyState !== 1)).toBe(true);
  });
});

it('closes when the key expires that it was opened with, also if that was set meanwhile', async () => {
  const expiring = await issue();
  const client = await open(expiring.key);
  const soon = new Date(Date.now() + 10_000).toISOString();
  await gateway.admin('PATCH', `/keys/${expiring.id}`, { expires_at: soon });
  expect((await client.closed).code).toBe(1008);

  const rotated = await issue();
  const old = await open(rotated.key);
  const { key } = await gateway.admin<Issued>('POST', `/keys/${rotated.id}/rotate`, { grace_seconds: 1 });
  const current = await open(key);
  expect((await old.closed).code).toBe(1008);
  expect(current.socket.readyState).toBe(current.socket.OPEN);
  current.socket.close();
});

it('goes on when the expiry of its key is moved', async () => {
  const at = Date.now() + 10_000;
  const moved = await issue({ expires_at: new Date(at).toISOString() });
  const client = await open(moved.key);
  await gateway.admin('PATCH', `/keys/${moved.id}`, { expires_at: null });
  await eventually(() => Date.now() > at + 1_000);
  expect(client.socket.readyState).toBe(client.socket.OPEN);
  client.socket.close();
  await client.closed;
});

it.each([
  ['provider', { providers: ['other'] }],
  ['models', { models: ['gpt-5*'] }],
])('closes when its key may not use the %s any more', async (_, change) => {
  await gateway
    .admin('POST', '/providers', { name: 'other', url: provider.url, secret: null })
    .catch(() => {});
  const changed = await issue();
  const client = await open(changed.key);
  await gateway.admin('PATCH', `/keys/${changed.id}`, change);
  expect((await client.closed).code).toBe(1008);
});

it('closes when its provider is disabled', async () => {
  await gateway.admin('POST', '/providers', { name: 'disabled-later', url: provider.url, secret: null });
  const { key } = await issue();
  const client = await open(key, {}, `/p/disabled-later${REALTIME}`);
  await gateway.admin('PATCH', '/providers/disabled-later', { enabled: false });
  expect((await client.closed).code).toBe(1008);
});

it('sends a provider with a credential of its own no other key among the subprotocols', async () => {
  const { key } = await issue();
  const own = 'openai-insecure-api-key.sk-of-the-caller-0123456789';
  const client = await open(key, { protocols: ['realtime', own] });
  const { headers } = provider.handshakes.at(-1)!;
  expect(headers).toMatchObject({
    authorization: `Bearer ${PROVIDER_KEY}`,
    'sec-websocket-protocol': 'realtime',
  });
  client.socket.close();
  await client.closed;
});

describe('the copy of compressed messages', () => {
  it('takes bounded memory, however small the parts are in which they come', () => {
    let failed = false;
    const inflater = new MessageInflater({
      onInflated: () => {},
      onInflatedEnd: () => {},
      onFailed: () => (failed = true),
    });
    const part = deflateRawSync(Buffer.from('x')).subarray(0, 1);
    let parts = 0;
    while (!failed && parts < 1_000_000) {
      inflater.add(part);
      parts++;
    }
    // Each part is a Buffer, which takes some hundred bytes.
    expect(parts).toBeLessThan(200_000);
    inflater.close();
  });
});

describe('a provider that opens something else', () => {
  let server: Server;
  let response = '';
  beforeAll(async () => {
    server = createServer((socket: Socket) => {
      socket.on('error', () => {});
      socket.once('data', () => socket.end(response, 'latin1'));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await gateway.admin('POST', '/providers', { name: 'odd', url, secret: null });
  });
  afterAll(() => new Promise((resolve) => server.close(resolve)));

  it.each([
    ['another protocol', 'HTTP/1.1 101 X\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n'],
    ['no protocol', 'HTTP/1.1 101 X\r\nConnection: Upgrade\r\n\r\n'],
  ])('is a 502: %s', async (_, bytes) => {
    response = bytes;
    const { key } = await issue();
    const client = WsClient.connect(gateway.url, '/p/odd/v1/responses', { authorization: `Bearer ${key}` });
    const status = await new Promise((resolve) => {
      client.socket.once('unexpected-response', (_req, res) => resolve(res.statusCode));
      client.socket.once('open', () => resolve('open'));
      client.socket.once('close', () => resolve('closed'));
    });
    expect(status).toBe(502);
  });
});
