import { randomUUID } from 'node:crypto';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { deferred } from '../support/deferred.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { RawClient, request } from '../support/raw-client.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { RawReader } from '../support/raw-reader.js';
import { answersOn, echo, Wire } from '../support/wire.js';

describe('answers', () => {
  let wire: Wire;

  beforeAll(async () => {
    wire = await Wire.start();
  });
  afterEach(() => {
    wire.provider.script = echo;
  });
  afterAll(() => wire.stop());

  const LINE = 'POST /v1/chat/completions';
  const numbered = (n: number) => request(`${LINE}?n=${n}`, [wire.auth], `body ${n}`);

  it('answers pipelined requests in their order, each with its own answer', async () => {
    const secondAnswered = deferred();
    wire.provider.script = async (req) => {
      const n = Number(/n=(\d+)/.exec(req.head)![1]);
      const { bytes } = await req.body;
      // The provider answers the second before the first.
      if (n === 0) await secondAnswered.promise;
      req.socket.write(answer('200 OK', [`X-N: ${n}`], bytes));
      if (n === 1) secondAnswered.resolve();
    };
    const client = await wire.connect();
    client.send(Buffer.concat(Array.from({ length: 20 }, (_, n) => numbered(n))));
    const replies = await answersOn(client, 20);
    client.destroy();
    expect(replies.map((reply) => [reply.header('x-n'), reply.body.toString()])).toEqual(
      Array.from({ length: 20 }, (_, n) => [String(n), `body ${n}`]),
    );
    await wire.expectSound(20);
  });

  it('answers what came whole before it refuses what did not', async () => {
    const refused = deferred();
    wire.provider.script = async (req) => {
      await refused.promise;
      await echo(req);
    };
    const client = await wire.connect();
    client.send(Buffer.concat([numbered(1), numbered(2), Buffer.from('NONSENSE\r\n\r\n')]));
    // The provider is held until a later connection was served: the fault has been seen by then.
    const other = await wire.connect();
    other.send('NONSENSE\r\n\r\n');
    await other.answer();
    refused.resolve();
    const replies = await answersOn(client, 4);
    expect(replies.map(({ status, body }) => [status, body.toString().slice(0, 6)])).toEqual([
      [200, 'body 1'],
      [200, 'body 2'],
      [400, '{"erro'],
    ]);
    await client.closed;
    await wire.expectSound(2);
  });

  it('keeps refusals in their place among answers', async () => {
    const client = await wire.connect();
    client.send(
      Buffer.concat([
        numbered(1),
        request('POST /v1/../x', [wire.auth], 'a body'),
        numbered(2),
        request(LINE, [], 'a body'),
        request('POST /v1/x', [wire.auth, 'Host: second.test'], 'a body'),
        numbered(3),
      ]),
    );
    const replies = await answersOn(client, 6);
    expect(replies.map(({ status }) => status)).toEqual([200, 400, 200, 401, 400]);
    await client.closed;
    await wire.expectSound(2);
  });
});

describe('drain', () => {
  let gateway: TestGateway;
  let provider: RawProvider;

  const LARGE = Buffer.alloc(30_000_000, 'a');

  beforeAll(async () => {
    provider = await RawProvider.start(async (req) => {
      await req.body;
      const large = req.head.startsWith('POST /v1/chat/completions');
      req.socket.write(answer('200 OK', [], large ? LARGE : 'small'));
    });
    gateway = await startTestGateway({ PROVIDER_URL: provider.url });
  });
  afterAll(async () => {
    await gateway.stop();
    await provider.stop();
  });

  // While the first answer waits for its reader, the second one is written behind it; Node then says 'drain' to the first.
  it('a slow reader gets both answers whole when the second comes while the first is held back', async () => {
    const key = [`Authorization: Bearer ${gateway.key}`];
    const client = await RawClient.connect(gateway.port);
    client.socket.pause();
    client.send(request('POST /v1/chat/completions', key, '{}'));
    client.send(request('POST /v1/embeddings', key, '{}'));
    // Both are answered by the provider before the client reads a byte.
    while (provider.requests.length < 2) await new Promise((resolve) => setTimeout(resolve, 10));
    await new Promise((resolve) => setTimeout(resolve, 300));
    client.socket.resume();
    const first = await client.answer();
    const second = await client.answer();
    client.destroy();
    expect(first.body.equals(LARGE)).toBe(true);
    expect(second.body.toString()).toBe('small');
    for (const reply of [first, second]) {
      expect(await gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({
        outcome: 'completed',
      });
    }
  });
});

describe('one request each', () => {
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
});
