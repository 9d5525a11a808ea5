import { randomBytes } from 'node:crypto';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { eventually } from '../support/eventually.js';
import { RawClient } from '../support/raw-client.js';

// Bytes, not frames: what passes is not looked at.

let server: Server;
let gateway: TestGateway;
let auth: string;
/** The provider's end of the newest connection, once it has sent 101. */
let provider: Socket;
let heads: string[];
/** What it sends behind its response, in the same packet. */
let behind = '';
/** What happens before it. */
let hold: (() => Promise<void>) | null = null;
const OPENING =
  'HTTP/1.1 101 Switching Protocols\r\nUPGRADE: websocket\r\nX-Two: b\r\nx-two: a\r\nSet-Cookie: x\r\n' +
  'Connection: Upgrade\r\nSec-WebSocket-Accept: abc=\r\n\r\n';

beforeAll(async () => {
  heads = [];
  server = createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => {});
    let head = '';
    const onData = (chunk: Buffer) => {
      head += chunk.toString('latin1');
      if (!head.includes('\r\n\r\n')) return;
      socket.off('data', onData);
      socket.pause();
      heads.push(head);
      provider = socket;
      void Promise.resolve(hold?.()).then(() => socket.write(OPENING + behind, 'latin1'));
    };
    socket.on('data', onData);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  gateway = await startTestGateway({ PROVIDER_URL: url });
  auth = `Authorization: Bearer ${await gateway.createKey({ websockets: true })}`;
});
afterAll(async () => {
  await gateway.stop();
  provider.destroy();
  await new Promise((resolve) => server.close(resolve));
});

beforeEach(() => {
  behind = '';
});

const HANDSHAKE = ['Connection: keep-alive, Upgrade', 'Upgrade: WebSocket', 'Sec-WebSocket-Version: 13'];

async function open(more: string[] = []): Promise<{ client: RawClient; head: string; id: string }> {
  const client = await RawClient.connect(gateway.port);
  const lines = [
    'GET /v1/responses HTTP/1.1',
    'Host: g',
    auth,
    ...HANDSHAKE,
    'sec-websocket-KEY: k==',
    ...more,
  ];
  const before = heads.length;
  client.send(`${lines.join('\r\n')}\r\n\r\n`);
  const { head, header } = await client.head();
  await eventually(() => heads.length > before);
  return { client, head, id: header('x-gateway-request-id')! };
}

function received(socket: Socket, length: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let sum = 0;
  return new Promise((resolve) => {
    const onData = (part: Buffer) => {
      parts.push(part);
      sum += part.length;
      if (sum < length) return;
      socket.off('data', onData);
      resolve(Buffer.concat(parts));
    };
    socket.on('data', onData);
    socket.resume();
  });
}

it('passes the heads, and then any bytes both ways as they are', async () => {
  const { client, head } = await open();
  expect(heads.at(-1)!.split('\r\n').slice(0, 1)).toEqual(['GET /v1/responses HTTP/1.1']);
  expect(heads.at(-1)).toMatch(/\r\nsec-websocket-KEY: k==\r\n/);
  expect(heads.at(-1)).toMatch(/\r\nupgrade: websocket\r\n/i);
  expect(head.split('\r\n')).toEqual([
    'HTTP/1.1 101 Switching Protocols',
    'Upgrade: websocket',
    'Connection: Upgrade',
    'X-Two: b',
    'x-two: a',
    'Sec-WebSocket-Accept: abc=',
    expect.stringMatching(/^x-gateway-request-id: /) as string,
  ]);
  for (const size of [1, 2, 125, 126, 65_537, 3_000_000]) {
    const bytes = randomBytes(size);
    const [down, up] = [received(client.socket, size), received(provider, size)];
    provider.write(bytes);
    client.send(bytes);
    expect((await down).equals(bytes)).toBe(true);
    expect((await up).equals(bytes)).toBe(true);
  }
  client.destroy();
});

it('passes what the provider sends with its response', async () => {
  behind = '\x81\x02hi';
  const client = await RawClient.connect(gateway.port);
  const first = received(client.socket, 1);
  client.send(
    `GET /v1/responses HTTP/1.1\r\nHost: g\r\n${auth}\r\n${HANDSHAKE.join('\r\n')}\r\nSec-WebSocket-Key: k\r\n\r\n`,
  );
  let text = (await first).toString('latin1');
  while (!text.includes('hi')) text += (await received(client.socket, 1)).toString('latin1');
  expect(text).toContain('\r\n\r\n\x81\x02hi');
  client.destroy();
});

it('stops reading from a side while the other one does not read', async () => {
  const { client, id } = await open();
  client.socket.pause();
  const block = Buffer.alloc(1024 * 1024);
  let written = 0;
  const fill = (socket: Socket) => {
    let blocked = 0;
    return eventually(() => {
      if (!socket.writableNeedDrain) {
        socket.write(block);
        written += block.length;
        blocked = 0;
      } else blocked++;
      return blocked > 50;
    });
  };
  await fill(provider);
  // What the kernel's buffers of three sockets take, and what the gateway may hold, is far below this.
  expect(written).toBeLessThan(100 * 1024 * 1024);
  const rest = received(client.socket, written);
  expect((await rest).length).toBe(written);
  const down = written;
  written = 0;
  await fill(client.socket);
  expect(written).toBeLessThan(100 * 1024 * 1024);
  expect((await received(provider, written)).length).toBe(written);
  client.destroy();
  expect(await eventually(() => gateway.row(id))).toMatchObject({
    outcome: 'client_aborted',
    request_bytes: String(written),
    response_bytes: String(down),
  });
});

it('ends both sides when one ends its sending side', async () => {
  for (const side of ['client', 'provider'] as const) {
    const { client, id } = await open();
    const closed = new Promise<void>((resolve) => provider.once('close', () => resolve()));
    provider.resume();
    client.socket.resume();
    if (side === 'client') client.socket.end();
    else provider.end();
    await Promise.all([closed, client.closed]);
    expect(await eventually(() => gateway.row(id))).toMatchObject({
      outcome: side === 'client' ? 'client_aborted' : 'truncated',
    });
  }
});

it('opens none for a client that sends before it is open, because a part of it would be lost', async () => {
  const client = await RawClient.connect(gateway.port);
  const lines = ['GET /v1/responses HTTP/1.1', 'Host: g', auth, ...HANDSHAKE, 'Sec-WebSocket-Key: k'];
  const before = heads.length;
  hold = async () => {
    client.send('\x81\x82\0\0\0\0hi');
    // The gateway has read it once it has done what came later on another connection.
    await eventually(async () => (await fetch(`${gateway.url}/health/live`)).ok);
  };
  client.send(`${lines.join('\r\n')}\r\n\r\n`);
  const reply = await client.answer();
  hold = null;
  expect([reply.status, reply.header('x-gateway-error')]).toEqual([400, 'invalid_request']);
  expect(heads.length).toBe(before + 1);
  expect(await eventually(() => gateway.row(reply.header('x-gateway-request-id')!))).toMatchObject({
    outcome: 'client_error',
    status: 400,
  });
});

it.each([
  ['a method', 'POST /v1/responses', HANDSHAKE, 400],
  ['a body', 'GET /v1/responses', [...HANDSHAKE, 'Content-Length: 2'], 400],
  ['no Connection', 'GET /v1/responses', ['Upgrade: websocket', 'Sec-WebSocket-Version: 13'], 426],
  ['no Upgrade', 'GET /v1/responses', ['Connection: Upgrade', 'Sec-WebSocket-Version: 13'], 426],
])('rejects a handshake with %s', async (_, line, lines, status) => {
  const before = heads.length;
  const client = await RawClient.connect(gateway.port);
  const body = lines.some((one) => one.startsWith('Content-Length')) ? '{}' : '';
  client.send(
    `${line} HTTP/1.1\r\nHost: g\r\n${auth}\r\nSec-WebSocket-Key: k\r\n${lines.join('\r\n')}\r\n\r\n${body}`,
  );
  const reply = await client.answer();
  const code = status === 400 ? 'invalid_request' : 'upgrade_required';
  expect([reply.status, reply.header('x-gateway-error')]).toEqual([status, code]);
  await client.closed;
  expect(heads.length).toBe(before);
});
