import { randomUUID } from 'node:crypto';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { HttpAdapterHost } from '@nestjs/core';
import type { GatewayHttpAdapter } from '../../src/proxy/http/gateway-http.adapter.js';
import { deferred } from '../support/deferred.js';
import { eventually, timePasses } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { noticed, RawClient, request } from '../support/raw-client.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { RawReader } from '../support/raw-reader.js';
import { FULL } from '../support/scale.js';
import { responsesOn, echo, Wire } from '../support/wire.js';

describe('responses', () => {
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

  never('forwards pipelined requests one after the other, in their order', async () => {
    const events: string[] = [];
    wire.provider.script = async (req) => {
      const n = /n=(\d+)/.exec(req.head)![1];
      events.push(`got ${n}`);
      const { bytes } = await req.body;
      // The requests behind it have arrived.
      await noticed(wire.gateway);
      events.push(`answered ${n}`);
      req.socket.write(answer('200 OK', [`X-N: ${n}`], bytes));
    };
    const client = await wire.connect();
    client.send(Buffer.concat(Array.from({ length: 20 }, (_, n) => numbered(n))));
    const replies = await responsesOn(client, 20);
    client.destroy();
    const numbers = Array.from({ length: 20 }, (_, n) => n);
    expect(replies.map((reply) => [reply.header('x-n'), reply.body.toString()])).toEqual(
      numbers.map((n) => [String(n), `body ${n}`]),
    );
    expect(events).toEqual(numbers.flatMap((n) => [`got ${n}`, `answered ${n}`]));
    await wire.expectSound(20);
  });

  it('many pipelined requests use one upstream connection', async () => {
    const COUNT = FULL ? 2_000 : 400;
    const { connections } = wire.provider;
    const client = await wire.connect();
    client.send(Buffer.concat(Array.from({ length: COUNT }, (_, n) => numbered(n))));
    for (let n = 0; n < COUNT; n++) {
      const reply = await client.answer();
      if (reply.status !== 200 || reply.body.toString() !== `body ${n}`)
        throw new Error(`${n}: ${reply.head} ${reply.body.toString()}`);
    }
    client.destroy();
    expect(wire.provider.connections - connections).toBeLessThanOrEqual(1);
    await wire.expectSound(COUNT);
  });

  never('answers what came whole before it rejects what did not', async () => {
    const rejected = deferred();
    wire.provider.script = async (req) => {
      await rejected.promise;
      await echo(req);
    };
    const client = await wire.connect();
    client.send(Buffer.concat([numbered(1), numbered(2), Buffer.from('NONSENSE\r\n\r\n')]));
    // The provider is held until a later connection was served: the error has been seen by then.
    const other = await wire.connect();
    other.send('NONSENSE\r\n\r\n');
    await other.answer();
    rejected.resolve();
    const replies = await responsesOn(client, 4);
    expect(replies.map(({ status, body }) => [status, body.toString().slice(0, 6)])).toEqual([
      [200, 'body 1'],
      [200, 'body 2'],
      [400, '{"erro'],
    ]);
    await client.closed;
    await wire.expectSound(2);
  });

  it('answers all that came whole before what did not, also when reading had paused', async () => {
    const COUNT = 100;
    wire.provider.script = echo;
    const client = await wire.connect();
    const calls = Array.from({ length: COUNT }, (_, n) => numbered(n));
    client.send(Buffer.concat([...calls, Buffer.from('NONSENSE\r\n\r\n'), ...calls]));
    const replies = await responsesOn(client, COUNT + 2);
    expect(replies.map(({ status }) => status)).toEqual([...Array<number>(COUNT).fill(200), 400]);
    await client.closed;
    await wire.expectSound(COUNT);
  });

  never('handles nothing that comes after a request that ends the connection', async () => {
    const ends = request(LINE, [wire.auth, 'Connection: close'], 'last');
    const replies = await wire.send(Buffer.concat([numbered(1), ends, numbered(2), numbered(3)]), 4);
    expect(replies.map(({ body }) => body.toString().slice(0, 6))).toEqual(['body 1', 'last']);
    await wire.expectSound(2);
  });

  it('carries the large body of a request that waits', async () => {
    const first = deferred();
    wire.provider.script = async (req) => {
      const { bytes } = await req.body;
      if (req.head.includes('n=1')) await first.promise;
      req.socket.write(answer('200 OK', [], String(bytes.length)));
    };
    const client = await wire.connect();
    client.send(numbered(1));
    client.send(request(LINE, [wire.auth], Buffer.alloc(20_000_000, 'a')));
    client.send(numbered(3));
    await eventually(() => wire.provider.requests.at(-1)!.head.includes('n=1'));
    first.resolve();
    const replies = await responsesOn(client, 3);
    client.destroy();
    expect(replies.map(({ body }) => body.toString())).toEqual(['6', '20000000', '6']);
    await wire.expectSound(3);
  });

  never('keeps rejections in their place among responses', async () => {
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
    const replies = await responsesOn(client, 6);
    expect(replies.map(({ status }) => status)).toEqual([200, 400, 200, 401, 400]);
    await client.closed;
    await wire.expectSound(2);
  });

  it('reads no further while many requests wait, and goes on afterwards', async () => {
    const COUNT = 10_000;
    const first = deferred();
    wire.provider.script = async (req) => {
      await first.promise;
      await echo(req);
    };
    const client = await wire.connect();
    const padding = `X-Padding: ${'x'.repeat(4_000)}`;
    // Each call of `send` goes out on its own: what the gateway does not read stays here once the buffers are full.
    let sent = 0;
    const send = () => {
      if (sent === COUNT) return;
      const bytes = request(`GET /v1/models?n=${sent}`, [wire.auth, padding]);
      client.socket.write(bytes, () => {
        sent++;
        send();
      });
    };
    send();
    // Nothing is read while the gateway serves so many requests on other connections.
    await eventually(async () => {
      const before = sent;
      for (let i = 0; i < 50; i++) await noticed(wire.gateway);
      return before > 0 && sent === before;
    });
    expect(sent).toBeLessThan(COUNT / 2);
    first.resolve();
    for (let n = 0; n < 300; n++) {
      const reply = await client.answer();
      expect(reply.header('x-target')).toBe(`/v1/models?n=${n}`);
    }
    client.destroy();
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

  it('a slow reader gets both responses whole, and the second request is forwarded only after the first response', async () => {
    const key = [`Authorization: Bearer ${gateway.key}`];
    const client = await RawClient.connect(gateway.port);
    client.socket.pause();
    client.send(request('POST /v1/chat/completions', key, '{}'));
    client.send(request('POST /v1/embeddings', key, '{}'));
    await eventually(() => provider.requests.length === 1);
    const other = await RawClient.connect(gateway.port);
    other.send(request('GET /v1/models', key));
    await other.answer();
    other.destroy();
    expect(provider.requests.map(({ head }) => head.split(' ')[1])).toEqual([
      '/v1/chat/completions',
      '/v1/models',
    ]);
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

describe('a time limit for heads', () => {
  let wire: Wire;

  beforeAll(async () => {
    wire = await Wire.start({ CLIENT_HEADERS_TIMEOUT_MS: '3000' });
  });
  afterAll(() => wire.stop());

  it('does not run out for a head that the gateway has not read to its end', async () => {
    const COUNT = 200;
    const first = deferred();
    wire.provider.script = async (req) => {
      await first.promise;
      await echo(req);
    };
    const client = await wire.connect();
    const padding = `X-Padding: ${'x'.repeat(4_000)}`;
    client.send(
      Buffer.concat(Array(COUNT).fill(request('GET /v1/models', [wire.auth, padding])) as Buffer[]),
    );
    await timePasses(6_000, 'longer than the limit');
    first.resolve();
    const replies = await responsesOn(client, COUNT);
    client.destroy();
    expect(replies.map(({ status }) => status)).toEqual(Array(COUNT).fill(200));
  });

  /** Two calls and the beginning of a third, whose time runs out before the first is answered. */
  async function lateHead(after: string): Promise<RawClient> {
    const first = deferred();
    wire.provider.script = async (req) => {
      await first.promise;
      await echo(req);
    };
    const client = await wire.connect();
    const call = request('GET /v1/models', [wire.auth]);
    client.send(Buffer.concat([call, call, Buffer.from('GET /v1/models HTTP/1.1\r\nX: ')]));
    await timePasses(6_000, 'longer than the limit');
    client.send(after);
    first.resolve();
    return client;
  }

  it.each([
    ['comes byte by byte', 200],
    ['stops', 0],
  ])('holds for a head behind calls that %s', async (_, every) => {
    const client = await lateHead('');
    const bytes = every === 0 ? undefined : setInterval(() => client.send('x'), every);
    const replies = await responsesOn(client, 4);
    clearInterval(bytes);
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 408]);
    wire.expectRejection(replies[2], 408, 'request_timeout');
    expect(replies[2]!.header('connection')).toBe('close');
    await client.closed;
  });

  it('starts again for a head behind calls, and ends with that head', async () => {
    const rest = `x\r\nHost: gateway.test\r\n${wire.auth}\r\n\r\n`;
    const behind = await lateHead(rest);
    expect((await responsesOn(behind, 3)).map(({ status }) => status)).toEqual([200, 200, 200]);
    const client = await lateHead('x');
    const replies = await responsesOn(client, 2);
    client.send(rest);
    replies.push(await client.answer());
    await timePasses(6_000, 'longer than the limit');
    for (const kept of [client, behind]) {
      kept.send(request('GET /v1/models', [wire.auth]));
      replies.push(await kept.answer());
      kept.destroy();
    }
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  });
});

describe('a stop', () => {
  it('answers the call that runs and the next one of its connection, which says that it closes', async () => {
    const first = deferred();
    const wire = await Wire.start({ SHUTDOWN_GRACE_MS: '60000' }, async (req) => {
      await first.promise;
      await echo(req);
    });
    const client = await wire.connect();
    client.send(Buffer.concat(Array(50).fill(request('GET /v1/models', [wire.auth])) as Buffer[]));
    await eventually(() => wire.provider.requests.length === 1);
    const adapter = wire.gateway.gateway.app.get(HttpAdapterHost).httpAdapter as GatewayHttpAdapter;
    const stopped = wire.stop();
    await eventually(() => adapter.draining);
    first.resolve();
    const replies = await responsesOn(client, 50);
    await client.closed;
    await stopped;
    expect(replies.map((reply) => [reply.status, reply.header('connection')])).toEqual([
      [200, 'keep-alive'],
      [200, 'close'],
    ]);
    expect(wire.provider.requests).toHaveLength(2);
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
