import { eventually } from '../support/eventually.js';
import { answer, chunk } from '../support/raw-provider.js';
import { noticed, RawClient, request } from '../support/raw-client.js';
import { unusedPort } from '../support/unused-port.js';
import { closes, replies, Routed } from './routed.js';

let routed: Routed;
beforeAll(async () => {
  routed = await Routed.start();
  const url = `http://127.0.0.1:${await unusedPort()}`;
  await routed.gateway.admin('POST', '/providers', { name: 'gone', url, secret: null });
});
afterAll(() => routed.gateway.stop());
beforeEach(() => routed.script({}));

const LIMITED = replies(
  '429 Too Many Requests',
  // As Anthropic names it; others send x-request-id.
  ['Content-Type: application/json', 'request-id: of-a'],
  '{"e":1}',
);
const outcomes = (rows: Record<string, unknown>[]) =>
  rows.map(({ attempt, provider, status, outcome }) => [attempt, provider, status, outcome]);

describe('a route', () => {
  it('sends a call that a target refused to the next one, with the same bytes but host and credential', async () => {
    routed.script({ a: LIMITED });
    const name = await routed.route();
    const body = `{"model": "m",\t"a":[1.0, "ü"] }`;
    const headers = ['X-One: 1', 'Content-Type: application/json', 'x-one: 2', 'accept: */*'];
    const reply = await routed.call(name, headers, body);
    expect([reply.status, reply.body.toString(), reply.header('x-gateway-altered')]).toEqual([
      200,
      'b',
      undefined,
    ]);
    const [a, b] = [routed.providers.a.requests[0]!, routed.providers.b.requests[0]!];
    const plain = (head: string) => head.replace(/^(Host|Authorization): .*$/gim, '$1');
    expect(plain(b.head)).toBe(plain(a.head));
    expect([(await a.body).framed, (await b.body).framed]).toEqual([Buffer.from(body), Buffer.from(body)]);
    expect(b.headers).toContainEqual(['Authorization', 'Bearer sk-of-b-0123456789']);
    const rows = await routed.rows(reply);
    expect(outcomes(rows)).toEqual([
      [1, 'a', 429, 'retried'],
      [2, 'b', 200, 'completed'],
    ]);
    expect(rows[0]).toMatchObject({
      id: reply.header('x-gateway-request-id'),
      response_bytes: '0',
      provider_request_id: 'of-a',
    });
    expect(rows.map(({ request_bytes, model }) => [request_bytes, model])).toEqual(
      Array(2).fill([String(Buffer.byteLength(body)), 'm']),
    );
    for (const { id } of rows) {
      const shown = await routed.gateway.admin<{ attempts: { id: string }[] }>('GET', `/requests/${id}`);
      expect(shown.attempts.map((one) => one.id)).toEqual(rows.map((row) => row.id));
    }
  });

  it('counts a call once in usage', async () => {
    routed.script({ a: LIMITED });
    const key = await routed.gateway.createKey();
    const name = await routed.route();
    const client = await RawClient.connect(routed.gateway.port);
    client.send(request(`POST /p/${name}/v1/chat/completions`, [`Authorization: Bearer ${key}`], '{}'));
    await routed.rows(await client.answer());
    client.destroy();
    const { data } = await routed.gateway.admin<{ data: object[] }>('GET', '/usage?group_by=key');
    expect(data).toContainEqual(
      expect.objectContaining({
        calls: 1,
        retried_attempts: 1,
        errors: 0,
        request_bytes: 2,
        response_bytes: 1,
      }),
    );
  });

  it.each([[[]], [['Transfer-Encoding: chunked']]])(
    'sends an empty and a chunked body alike to both: %j',
    async (framing) => {
      routed.script({ a: LIMITED });
      const name = await routed.route();
      const body =
        framing.length === 0 ? '' : Buffer.concat([chunk('one'), chunk('two'), Buffer.from('0\r\n\r\n')]);
      const client = await RawClient.connect(routed.gateway.port);
      const line = framing.length === 0 ? 'GET' : 'POST';
      client.send(
        `${line} /p/${name}/v1/files HTTP/1.1\r\nHost: x\r\n${[routed.auth, ...framing].join('\r\n')}\r\n\r\n`,
      );
      client.send(body);
      expect((await client.answer()).body.toString()).toBe('b');
      client.destroy();
      const bodies = [routed.providers.a.requests[0]!, routed.providers.b.requests[0]!].map(
        ({ body }) => body,
      );
      const [a, b] = await Promise.all(bodies);
      expect(b!.framed).toEqual(a!.framed);
      expect(b!.bytes.toString()).toBe(framing.length === 0 ? '' : 'onetwo');
    },
  );

  it('goes to the next target when no connection is made, also with a body that is streamed', async () => {
    const targets = [{ provider: 'gone' }, { provider: 'b' }];
    for (const retry_on of [['connect'], ['connect', 'refused']]) {
      const name = await routed.route({ targets, retry_on });
      for (const bytes of [2, 400_000]) {
        routed.script({});
        const body = Buffer.alloc(bytes, 'x');
        const reply = await routed.call(name, [], body);
        expect([reply.status, reply.body.toString()]).toEqual([200, 'b']);
        expect((await routed.providers.b.requests[0]!.body).bytes.equals(body)).toBe(true);
        expect(outcomes(await routed.rows(reply))).toEqual([
          [1, 'gone', null, 'retried'],
          [2, 'b', 200, 'completed'],
        ]);
      }
    }
  });

  it('streams a body over 32 MiB, which is sent again only if no connection was made', async () => {
    const body = Buffer.alloc(34 * 1024 * 1024, 'x');
    const send = async (route: string, framing: 'length' | 'chunks') => {
      const client = await RawClient.connect(routed.gateway.port);
      const line = `POST /p/${route}/v1/chat/completions`;
      if (framing === 'length') client.send(request(line, [routed.auth], body));
      else {
        client.send(`${line} HTTP/1.1\r\nHost: x\r\n${routed.auth}\r\nTransfer-Encoding: chunked\r\n\r\n`);
        client.send(Buffer.concat([chunk(body), Buffer.from('0\r\n\r\n')]));
      }
      const { status } = await client.answer();
      client.destroy();
      return status;
    };
    for (const framing of ['length', 'chunks'] as const) {
      routed.script({ a: LIMITED });
      expect(await send(await routed.route(), framing)).toBe(429);
      expect(routed.counts).toEqual([1, 0, 0]);
      expect((await routed.providers.a.requests[0]!.body).bytes.equals(body)).toBe(true);
      const gone = await routed.route({ targets: [{ provider: 'gone' }, { provider: 'b' }] });
      expect(await send(gone, framing)).toBe(200);
      expect((await routed.providers.b.requests[0]!.body).bytes.equals(body)).toBe(true);
    }
  });

  it.each([
    ['500', replies('500 X'), 500],
    ['a closed connection', closes, 502],
  ])('sends a call once when a target may have run it: %s', async (_, script, status) => {
    routed.script({ a: script });
    const reply = await routed.call(await routed.route());
    expect([reply.status, routed.counts]).toEqual([status, [1, 0, 0]]);
    expect(outcomes(await routed.rows(reply))).toHaveLength(1);
    routed.script({ a: script });
    const opted = await routed.call(await routed.route({ retry_on: ['failed'] }));
    expect([opted.status, routed.counts]).toEqual([200, [1, 1, 0]]);
  });

  it.each([
    [
      'speaks no HTTP',
      async (req: { body: Promise<unknown>; socket: { end(text: string): void } }) => {
        await req.body;
        req.socket.end('SSH-2.0-OpenSSH\r\n\r\n');
      },
      502,
    ],
    ['says that the request is bad', replies('400 X'), 400],
    ['says 501', replies('501 X'), 501],
  ])('sends a call once when a target %s, whatever it retries on', async (_, script, status) => {
    routed.script({ a: script });
    const reply = await routed.call(await routed.route({ retry_on: ['connect', 'refused', 'failed'] }));
    expect([reply.status, routed.counts]).toEqual([status, [1, 0, 0]]);
  });

  it('sends a call once when a target is silent, whatever it retries on', async () => {
    const hasty = await Routed.start({ UPSTREAM_HEADERS_TIMEOUT_MS: '400' });
    hasty.script({ a: (req) => req.closed });
    const reply = await hasty.call(await hasty.route({ retry_on: ['connect', 'refused', 'failed'] }));
    expect([reply.status, hasty.counts]).toEqual([504, [1, 0, 0]]);
    await hasty.gateway.stop();
  });

  it('sends a call once after the first byte of a response, and shows its truncation', async () => {
    for (const bytes of [
      'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf',
      'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n',
    ]) {
      routed.script({
        a: async (req) => {
          await req.body;
          req.socket.end(bytes);
        },
      });
      const client = await RawClient.connect(routed.gateway.port);
      const name = await routed.route({ retry_on: ['connect', 'refused', 'failed'] });
      client.send(request(`POST /p/${name}/v1/chat/completions`, [routed.auth], '{}'));
      const head = await client.head();
      await client.closed;
      expect([head.status, client.reader.rest.toString(), routed.counts]).toEqual([
        200,
        bytes.split('\r\n\r\n')[1],
        [1, 0, 0],
      ]);
      expect(outcomes(await routed.rows(head))).toEqual([[1, 'a', 200, 'truncated']]);
    }
  });

  it('hands the last response over as it is when all targets refuse, and no more than max_attempts', async () => {
    routed.script({ a: LIMITED, b: replies('503 Busy', ['Retry-After: 2', 'X-B: 1'], 'of b'), c: LIMITED });
    const targets = ['a', 'b', 'c'].map((provider) => ({ provider }));
    const reply = await routed.call(await routed.route({ targets }));
    expect([reply.status, reply.header('x-b'), reply.body.toString(), routed.counts]).toEqual([
      503,
      '1',
      'of b',
      [1, 1, 0],
    ]);
    expect(reply.header('x-gateway-error')).toBeUndefined();
    expect(outcomes(await routed.rows(reply))).toEqual([
      [1, 'a', 429, 'retried'],
      [2, 'b', 503, 'completed'],
    ]);
  });

  it('hands over the response before when the last attempt has none', async () => {
    routed.script({ a: LIMITED });
    const targets = [{ provider: 'a' }, { provider: 'gone' }];
    const reply = await routed.call(await routed.route({ targets }));
    expect([reply.status, reply.body.toString(), reply.header('request-id')]).toEqual([
      429,
      '{"e":1}',
      'of-a',
    ]);
    const rows = await routed.rows(reply);
    expect(outcomes(rows)).toEqual([
      [1, 'a', 429, 'retried'],
      [2, 'gone', 429, 'upstream_error'],
    ]);
    expect(rows[1]).toMatchObject({ error_code: 'upstream_unreachable', response_bytes: '7' });
    const none = [{ provider: 'gone' }, { provider: 'gone' }];
    expect((await routed.call(await routed.route({ targets: none }))).status).toBe(502);
  });

  it('keeps 64 KiB of such a response, and shows that it is cut', async () => {
    routed.script({ a: replies('429 X', [], Buffer.alloc(100_000, 'x')) });
    const targets = [{ provider: 'a' }, { provider: 'gone' }];
    const client = await RawClient.connect(routed.gateway.port);
    client.send(
      request(`POST /p/${await routed.route({ targets })}/v1/chat/completions`, [routed.auth], '{}'),
    );
    const head = await client.head();
    await client.closed;
    expect([head.status, head.header('content-length'), client.reader.rest.length]).toEqual([
      429,
      '100000',
      65_536,
    ]);
  });

  it.each([
    ['sends only its head', 'HTTP/1.1 429 X\r\nContent-Length: 9\r\n\r\n'],
    ['breaks off', 'HTTP/1.1 429 X\r\nContent-Length: 9\r\n\r\nhalf'],
  ])('does not wait for the body of a target that refuses and %s', async (kind, bytes) => {
    routed.script({
      a: async (req) => {
        await req.body;
        req.socket.write(bytes);
        if (kind === 'breaks off') req.socket.end();
        else await req.closed;
      },
    });
    const reply = await routed.call(await routed.route());
    expect([reply.status, reply.body.toString(), routed.counts]).toEqual([200, 'b', [1, 1, 0]]);
  });

  it('lets a target that refused rest, and a call probe it afterwards', async () => {
    routed.script({ a: replies('429 X', ['Retry-After: 10']) });
    const name = await routed.route();
    for (let i = 0; i < 3; i++) expect((await routed.call(name)).body.toString()).toBe('b');
    expect(routed.counts).toEqual([1, 3, 0]);
    routed.providers.a.script = replies('200 OK', [], 'a');
    await eventually(async () => (await routed.call(name)).body.toString() === 'a');
    expect((await routed.call(name)).body.toString()).toBe('a');
  });

  it('is used by keys that are limited to it, and as the default', async () => {
    const name = await routed.route({ default: true });
    const only = await routed.gateway.createKey({ providers: [name] });
    const other = await routed.gateway.createKey({ providers: ['b', 'c'] });
    const at = async (path: string, key: string) => {
      const response = await fetch(routed.gateway.url + path, {
        headers: { authorization: `Bearer ${key}` },
      });
      return response.ok ? response.text() : response.headers.get('x-gateway-error');
    };
    expect(await at('/v1/models', only)).toBe('a');
    expect(await at('/v1/models', routed.gateway.key)).toBe('a');
    expect(await at('/p/a/v1/models', only)).toBe('provider_not_allowed');
    expect(await at(`/p/${name}/v1/models`, other)).toBe('provider_not_allowed');
    expect(await at('/v1/files', routed.gateway.key)).toBe('endpoint_not_allowed');
    await routed.gateway.admin('PATCH', `/routes/${name}`, { default: false });
    expect(await at('/v1/models', routed.gateway.key)).toBe('no_provider_configured');
  });

  it('spreads sessions over targets and keeps each at one', async () => {
    const name = await routed.route({ strategy: 'spread' });
    const seen = new Map<string, Set<string>>();
    for (let i = 0; i < 40; i++) {
      const session = `session-${i % 10}`;
      const reply = await routed.call(name, [`${i % 2 ? 'x-gateway-session' : 'x-session-id'}: ${session}`]);
      seen.set(session, (seen.get(session) ?? new Set()).add(reply.body.toString()));
    }
    expect([...seen.values()].every(({ size }) => size === 1)).toBe(true);
    expect(new Set([...seen.values()].flatMap((names) => [...names])).size).toBe(2);
  });

  it('has one Idempotency-Key for all attempts, which sees the delivered response only', async () => {
    routed.script({ a: LIMITED });
    const name = await routed.route();
    const key = ['Idempotency-Key: order-1'];
    const first = await routed.call(name, key);
    const second = await routed.call(name, key);
    expect([first.body.toString(), second.body.toString()]).toEqual(['b', 'b']);
    expect([first.header('idempotent-replayed'), second.header('idempotent-replayed')]).toEqual([
      undefined,
      'true',
    ]);
    expect(routed.counts).toEqual([1, 1, 0]);
  });

  it('goes on when its client has left, if a retry can get the response', async () => {
    let refuse!: () => void;
    routed.script({
      a: async (req) => {
        await req.body;
        await new Promise<void>((resolve) => (refuse = resolve));
        req.socket.write(answer('429 X', []));
      },
    });
    const name = await routed.route();
    const client = await RawClient.connect(routed.gateway.port);
    client.send(
      request(`POST /p/${name}/v1/chat/completions`, [routed.auth, 'Idempotency-Key: left-1'], '{}'),
    );
    await eventually(() => routed.counts[0] === 1);
    await routed.providers.a.requests[0]!.body;
    client.destroy();
    await noticed(routed.gateway);
    refuse();
    const again = await routed.call(name, ['Idempotency-Key: left-1']);
    expect([again.body.toString(), again.header('idempotent-replayed')]).toEqual(['b', 'true']);
    expect(routed.counts).toEqual([1, 1, 0]);
  });
});
