import { createServer, type Socket } from 'node:net';
import { type AddressInfo } from 'node:net';
import { randomUUID } from 'node:crypto';
import { RawReader } from '../support/raw-reader.js';
import { RawClient, request } from '../support/raw-client.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';

/**
 * A provider that closes a connection the moment the next request arrives on it, or right after its answer: what a
 * provider's idle time-out does to a gateway that keeps connections. It counts every request line it ever reads.
 */
const seen = new Map<string, number>();
const sockets = new Set<Socket>();
let connections = 0;
const server = createServer({ noDelay: true }, (socket) => {
  connections++;
  sockets.add(socket);
  socket.on('error', () => {});
  socket.on('close', () => sockets.delete(socket));
  void serve(socket, connections % 3);
});

async function serve(socket: Socket, manner: number): Promise<void> {
  const reader = new RawReader(socket);
  for (let served = 0; ; served++) {
    const head = await reader.head().catch(() => null);
    if (head === null) return;
    const id = /probe=(\S+)/.exec(head)![1]!;
    seen.set(id, (seen.get(id) ?? 0) + 1);
    await reader.take(2).catch(() => {});
    // Read, counted, and dropped without a word: whoever sends it again makes the provider run it twice.
    if (served > 0 && manner === 0) return void socket.resetAndDestroy();
    if (served > 0 && manner === 1) return void socket.end();
    const reply = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
    // The answer promises a connection that is already closing.
    if (manner === 2) return void socket.end(reply);
    socket.write(reply);
  }
}

let gateway: TestGateway;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  gateway = await startTestGateway({ PROVIDER_URL: `http://127.0.0.1:${port}` });
});
afterAll(async () => {
  await gateway.stop();
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

it('sends no request twice, however the provider closes its connections', async () => {
  const CALLS = 400;
  const statuses: number[] = [];
  const ids: string[] = [];
  const lane = async () => {
    const client = await RawClient.connect(gateway.port);
    while (ids.length < CALLS) {
      const id = randomUUID();
      ids.push(id);
      client.send(
        request(`POST /v1/chat/completions?probe=${id}`, [`Authorization: Bearer ${gateway.key}`], '{}'),
      );
      statuses.push((await client.answer()).status);
    }
    client.destroy();
  };
  await Promise.all([lane(), lane(), lane(), lane()]);

  expect([...new Set(seen.values())]).toEqual([1]);
  const delivered = statuses.filter((status) => status === 200).length;
  const dropped = statuses.filter((status) => status === 502).length;
  expect(delivered + dropped).toBe(ids.length);
  // Both really happened: connections were kept and reused, and closed at the moment of reuse.
  expect(Math.min(delivered, dropped)).toBeGreaterThan(20);
  expect(seen.size).toBeGreaterThanOrEqual(delivered);
});
