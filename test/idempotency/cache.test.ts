import { randomUUID } from 'node:crypto';
import { CachedResponses } from '../../src/idempotency/cached-responses.service.js';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { RawClient, type ReceivedResponse, request } from '../support/raw-client.js';
import { answer, chunk, LAST_CHUNK, RawProvider, type Script, STREAM_HEAD } from '../support/raw-provider.js';
import { echo, Wire } from '../support/wire.js';

let wire: Wire;
let gateway: TestGateway;
beforeAll(async () => {
  wire = await Wire.start();
  gateway = wire.gateway;
});
afterAll(() => wire.stop());

let calls = 0;
/** A JSON response that is another one each time. */
const counting: Script = async (req) => {
  await req.body;
  const body = `{ "n": ${++calls},  "usage": {"prompt_tokens": 5, "completion_tokens": 7} }`;
  req.socket.write(answer('200 OK', ['Content-Type: application/json', 'X-Request-Id: up-1'], body));
};
beforeEach(() => {
  wire.provider.script = counting;
});

const CALL = 'POST /v1/chat/completions';
/** A body that no other test sends. */
const fresh = () => `{"model":"m","messages":[],"id":"${randomUUID()}"}`;
const keyWith = (cache: object | null, more: object = {}) => gateway.createKey({ cache, ...more });

async function send(
  key: string,
  body: string,
  headers: string[] = [],
  line = CALL,
): Promise<ReceivedResponse> {
  const client = await RawClient.connect(gateway.port);
  client.send(request(line, [`Authorization: Bearer ${key}`, ...headers], body));
  const reply = await client.answer();
  client.destroy();
  return reply;
}
const hitOf = (reply: ReceivedResponse) => reply.header('x-gateway-cache') === 'hit';
/** Calls until a response comes from the cache: it is stored after the client has it. */
async function untilHit(key: string, body: string, headers: string[] = []): Promise<ReceivedResponse> {
  let reply!: ReceivedResponse;
  await eventually(async () =>
    hitOf((reply = await send(key, body, ['x-gateway-cache: only-if-cached', ...headers]))),
  );
  return reply;
}
/** Whether a response is never stored: a later one is, and it is not. */
async function isNotStored(key: string, body: string): Promise<boolean> {
  const { script } = wire.provider;
  const marker = fresh();
  wire.provider.script = counting;
  await send(key, marker);
  await untilHit(key, marker);
  wire.provider.script = script;
  return (await send(key, body, ['x-gateway-cache: only-if-cached'])).status === 504;
}

it('returns the response of the same request, byte for byte, without a call to the provider', async () => {
  const key = await keyWith({ ttl_seconds: 600 });
  const body = fresh();
  const first = await send(key, body);
  expect(hitOf(first)).toBe(false);
  const sent = wire.provider.requests.length;
  const hit = await untilHit(key, body);
  const again = await send(key, body);
  expect([hit.status, hit.body, again.body]).toEqual([200, first.body, first.body]);
  expect(wire.provider.requests).toHaveLength(sent);
  expect(hit.header('content-type')).toBe('application/json');
  expect(hit.header('x-request-id')).toBe('up-1');
  expect(Number(hit.header('age'))).toBeGreaterThanOrEqual(0);
  expect(hit.header('x-gateway-request-id')).not.toBe(first.header('x-gateway-request-id'));
  const id = again.header('x-gateway-request-id')!;
  await eventually(
    async () => (await gateway.database.query('SELECT 1 FROM request_log WHERE id = $1', [id])).length === 1,
  );
  expect(await gateway.row(id)).toMatchObject({
    outcome: 'cached',
    status: 200,
    model: 'm',
    prompt_tokens: null,
    response_bytes: String(first.body.length),
    provider_request_id: 'up-1',
    cost_usd: '0.000000000',
  });
});

it('returns a stream byte for byte', async () => {
  const key = await keyWith({ ttl_seconds: 600 });
  const events = ['data: {"a":1}\n\n', ': comment\r\n\r\n', 'data: é\n\ndata: [DONE]\n\n'];
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write(STREAM_HEAD);
    for (const event of events) req.socket.write(chunk(event));
    req.socket.write(LAST_CHUNK);
  };
  const body = fresh();
  expect((await send(key, body)).body.toString()).toBe(events.join(''));
  const hit = await untilHit(key, body);
  expect([hit.body.toString(), hit.header('content-type')]).toEqual([events.join(''), 'text/event-stream']);
});

never.each([
  ['another body', {}, (body: string) => [`${body} `, [], CALL] as const],
  ['another path', {}, (body: string) => [body, [], 'POST /v1/responses'] as const],
  ['a query', {}, (body: string) => [body, [], `${CALL}?a=1`] as const],
  ['another Accept', {}, (body: string) => [body, ['Accept: text/event-stream'], CALL] as const],
  ['another Accept-Encoding', {}, (body: string) => [body, ['Accept-Encoding: gzip'], CALL] as const],
  ['another Content-Type', {}, (body: string) => [body, ['Content-Type: text/plain'], CALL] as const],
  ['a beta header', {}, (body: string) => [body, ['anthropic-beta: x'], CALL] as const],
  ['a header that another gateway heeds', {}, (body: string) => [body, ['x-litellm-tags: x'], CALL] as const],
  ['a header of any name', {}, (body: string) => [body, ['X-Model: x'], CALL] as const],
  ['a range', {}, (body: string) => [body, ['Range: bytes=0-1'], CALL] as const],
  ['an organization', {}, (body: string) => [body, ['OpenAI-Organization: x'], CALL] as const],
])('does not return it for %s', async (_, more, other) => {
  const key = await keyWith({ ttl_seconds: 600 }, more);
  const body = fresh();
  await send(key, body);
  await untilHit(key, body);
  const [changed, headers, line] = other(body);
  expect(hitOf(await send(key, changed, [...headers], line))).toBe(false);
});

it('returns a response that varies with nothing but what identifies it', async () => {
  const key = await keyWith({ ttl_seconds: 600 });
  const body = fresh();
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write(
      answer('200 OK', ['Vary: Accept-Encoding, Origin', 'Vary: X-Tenant, Authorization'], 'x'),
    );
  };
  await send(key, body);
  expect((await untilHit(key, body)).body.toString()).toBe('x');
});

it('returns it whatever headers do not matter for the response', async () => {
  const key = await keyWith({ ttl_seconds: 600 });
  const body = fresh();
  await send(key, body, [
    'User-Agent: a',
    'X-Stainless-Retry-Count: 0',
    'X-Forwarded-For: 192.0.2.1',
    'Cookie: a=b',
    'x-gateway-user: jane',
    'Anthropic-Beta: one',
    'OpenAI-Beta: two',
  ]);
  const other = [
    'OpenAI-BETA: two',
    'User-Agent: b',
    'anthropic-beta: one',
    'traceparent: 00-x',
    'X-Request-Id: 1',
  ];
  expect(hitOf(await untilHit(key, body, other))).toBe(true);
});

describe('who gets a response', () => {
  never('is only the key that stored it, unless the keys of a team share theirs', async () => {
    await gateway.admin('POST', '/teams', { name: 'other' });
    const alone = await keyWith({ ttl_seconds: 600 });
    const [one, two] = [
      await keyWith({ ttl_seconds: 600, shared: 'team' }),
      await keyWith({ ttl_seconds: 600, shared: 'team' }),
    ];
    const foreign = await keyWith({ ttl_seconds: 600, shared: 'team' }, { team: 'other' });
    const body = fresh();
    await send(alone, body);
    await untilHit(alone, body);
    expect(hitOf(await send(one, body))).toBe(false);
    const { body: shared } = await untilHit(two, body);
    expect(shared).toEqual((await untilHit(one, body)).body);
    expect(hitOf(await send(foreign, body))).toBe(false);
    expect(hitOf(await send(await keyWith({ ttl_seconds: 600 }), body))).toBe(false);
    const none = await send(await keyWith(null), body);
    expect([none.status, hitOf(none)]).toEqual([200, false]);
  });

  it('is nobody whose key was revoked, or may not use the provider or the model any more', async () => {
    const issued = await gateway.admin<{ id: string; key: string }>('POST', '/keys', {
      team: 'default',
      name: 'revoked',
      cache: { ttl_seconds: 600 },
    });
    const body = fresh();
    await send(issued.key, body);
    await untilHit(issued.key, body);
    const becomes = async (status: number, change: object) => {
      await gateway.admin('PATCH', `/keys/${issued.id}`, change);
      await eventually(async () => (await send(issued.key, body)).status === status);
    };
    await becomes(403, { models: ['gpt-*'] });
    await gateway.admin('PATCH', `/keys/${issued.id}`, { models: null });
    await gateway.storeProviders('elsewhere');
    await becomes(502, { providers: ['elsewhere'] });
    await gateway.admin('PATCH', `/keys/${issued.id}`, { providers: null });
    await eventually(async () => hitOf(await send(issued.key, body)));
    await gateway.admin('POST', `/keys/${issued.id}/revoke`, {});
    await eventually(async () => (await send(issued.key, body)).status === 401);
  });

  it('is counted by limits of requests like any call', async () => {
    const key = await keyWith({ ttl_seconds: 600 }, { limits: { requests_per_minute: 3 } });
    const body = fresh();
    await send(key, body);
    const statuses = [];
    for (let i = 0; i < 4; i++) statuses.push((await send(key, body)).status);
    expect(statuses).toEqual([200, 200, 429, 429]);
  });

  it('is nobody for a provider that was removed and added again, or has another secret', async () => {
    const add = () =>
      gateway.admin('POST', '/providers', { name: 'again', url: wire.provider.url, secret: 'first-account' });
    await add();
    const key = await keyWith({ ttl_seconds: 600 }, { providers: ['again'] });
    const body = fresh();
    await send(key, body);
    await untilHit(key, body);
    await gateway.admin('PATCH', '/providers/again', { secret: 'second-account' });
    expect(hitOf(await send(key, body))).toBe(false);
    await untilHit(key, body);
    const removed = await fetch(`${gateway.url}/admin/v1/providers/again`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    });
    expect(removed.status).toBe(204);
    await add();
    expect(hitOf(await send(key, body))).toBe(false);
  });

  never('is nobody in the team who sends other headers', async () => {
    const [one, two] = [
      await keyWith({ ttl_seconds: 600, shared: 'team' }),
      await keyWith({ ttl_seconds: 600, shared: 'team' }),
    ];
    const body = fresh();
    const config = ['x-portkey-config: {"model":"other"}'];
    await send(one, body, config);
    await untilHit(one, body, config);
    expect(hitOf(await send(two, body))).toBe(false);
    await untilHit(one, body);
  });

  it('is nobody for another provider of the same name', async () => {
    const moved = await RawProvider.start(echo);
    await gateway.admin('POST', '/providers', { name: 'moving', url: wire.provider.url, secret: null });
    const key = await keyWith({ ttl_seconds: 600 }, { providers: ['moving'] });
    const body = fresh();
    await send(key, body);
    await untilHit(key, body);
    await gateway.admin('PATCH', '/providers/moving', { url: moved.url });
    expect((await send(key, body)).body.toString()).toBe(body);
    await moved.stop();
  });
});

describe('a response is not stored', () => {
  const stream =
    (...parts: string[]): Script =>
    async (req) => {
      await req.body;
      req.socket.write(STREAM_HEAD + '');
      for (const part of parts) req.socket.write(part);
    };
  it.each<[string, Script]>([
    [
      'with another status',
      async (req) => {
        await req.body;
        req.socket.write(answer('201 Created', [], '{}'));
      },
    ],
    [
      'of an error',
      async (req) => {
        await req.body;
        req.socket.write(answer('500 Internal Server Error', [], '{}'));
      },
    ],
    [
      'that breaks off',
      async (req) => {
        await req.body;
        req.socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart');
      },
    ],
    [
      'that ends with its connection, which may be its loss',
      async (req) => {
        await req.body;
        req.socket.end('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nwhole?');
      },
    ],
    [
      'of a stream that failed (OpenAI)',
      stream(chunk('data: {"error": {"message": "x"}}\n\n').toString(), LAST_CHUNK),
    ],
    [
      'of a stream that failed (Anthropic)',
      stream(
        chunk('event: message_start\ndata: {}\n\n').toString(),
        chunk('event: error\ndata: {}\n\n').toString(),
        LAST_CHUNK,
      ),
    ],
    [
      'of a stream that failed (Responses)',
      stream(chunk('event: response.failed\ndata: {}\n\n').toString(), LAST_CHUNK),
    ],
    ...[
      '{"error": {"message": "overloaded", "code": 502}}',
      ' {\n"type":"error","error":{"type":"overloaded_error"}}',
      '{"error":"no capacity"}',
    ].map((body): [string, Script] => [
      `of an error with the status 200: ${body}`,
      async (req) => {
        await req.body;
        req.socket.write(answer('200 OK', ['Content-Type: application/json'], body));
      },
    ]),
    ...['X-Stainless-Lang', 'accept, user-agent', '*'].map((names): [string, Script] => [
      `that varies with other headers: ${names}`,
      async (req) => {
        await req.body;
        req.socket.write(answer('200 OK', [`Vary: ${names}`], '{}'));
      },
    ]),
    [
      'above 8 MiB',
      async (req) => {
        await req.body;
        req.socket.write(answer('200 OK', [], Buffer.alloc(8 * 1024 * 1024 + 1)));
      },
    ],
    [
      'above 8 MiB in chunks',
      async (req) => {
        await req.body;
        req.socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
        for (let i = 0; i < 9; i++) req.socket.write(chunk(Buffer.alloc(1024 * 1024)));
        req.socket.write(LAST_CHUNK);
      },
    ],
  ])('%s', async (_, script) => {
    const key = await keyWith({ ttl_seconds: 600 });
    const body = fresh();
    wire.provider.script = script;
    await send(key, body).catch(() => null);
    expect(await isNotStored(key, body)).toBe(true);
  });

  it('whose client has disconnected', async () => {
    const key = await keyWith({ ttl_seconds: 600 });
    const body = fresh();
    let closed!: Promise<void>;
    wire.provider.script = async (req) => {
      await req.body;
      ({ closed } = req);
      req.socket.write(STREAM_HEAD);
      req.socket.write(chunk('data: {}\n\n'));
    };
    const client = await RawClient.connect(gateway.port);
    client.send(request(CALL, [`Authorization: Bearer ${key}`], body));
    await eventually(() => closed !== undefined);
    client.destroy();
    await closed;
    expect(await isNotStored(key, body)).toBe(true);
  });

  it('of other methods, and of endpoints that are not for inference', async () => {
    const key = await keyWith({ ttl_seconds: 600 }, { endpoints: 'all' });
    for (const line of ['POST /v1/files', 'PUT /v1/chat/completions', 'GET /v1/models']) {
      const body = line.startsWith('GET') ? '' : 'x';
      await send(key, body, [], line);
      expect((await send(key, body, ['x-gateway-cache: only-if-cached'], line)).status).toBe(504);
      expect(hitOf(await send(key, body, [], line))).toBe(false);
    }
  });

  it('of a provider to which callers send their own credential', async () => {
    const { url } = wire.provider;
    await gateway.admin('POST', '/providers', { name: 'own', url, auth: 'client', secret: null });
    const key = await keyWith({ ttl_seconds: 600 });
    const [body, marker] = [fresh(), fresh()];
    const line = 'POST /p/own/v1/chat/completions';
    await send(key, body, ['x-api-key: own-1'], line);
    await send(key, marker);
    await untilHit(key, marker);
    const reply = await send(key, body, ['x-api-key: own-2', 'x-gateway-cache: only-if-cached'], line);
    expect(reply.status).toBe(504);
  });

  it('of a call with an Idempotency-Key of a key that replays', async () => {
    const key = await keyWith({ ttl_seconds: 600 }, { idempotency: 'replay' });
    const body = fresh();
    await send(key, body, ['Idempotency-Key: a']);
    expect((await send(key, body, ['Idempotency-Key: a'])).header('idempotent-replayed')).toBe('true');
    expect(await isNotStored(key, body)).toBe(true);
  });
});

describe('x-gateway-cache', () => {
  it('no-store neither reads nor stores; no-cache stores without reading; it is not forwarded', async () => {
    const key = await keyWith({ ttl_seconds: 600 });
    const body = fresh();
    const first = await send(key, body, ['x-gateway-cache: no-store']);
    expect(await isNotStored(key, body)).toBe(true);
    const second = await send(key, body, ['X-Gateway-Cache: No-Cache']);
    expect((await untilHit(key, body)).body).toEqual(second.body);
    const third = await send(key, body, ['x-gateway-cache: no-cache']);
    await eventually(async () => (await send(key, body)).body.equals(third.body));
    expect(new Set([first, second, third].map((reply) => reply.body.toString())).size).toBe(3);
    expect(wire.provider.requests.every(({ head }) => !/x-gateway-cache/i.test(head))).toBe(true);
  });

  it('only-if-cached is 504 without a response, and nothing is forwarded', async () => {
    const key = await keyWith({ ttl_seconds: 600 });
    const sent = wire.provider.requests.length;
    const reply = await send(key, fresh(), ['x-gateway-cache: only-if-cached']);
    wire.expectRejection(reply, 504, 'not_cached');
    expect([reply.header('x-should-retry'), wire.provider.requests.length]).toEqual(['false', sent]);
  });

  never('only-if-cached never reaches the provider, also if the key has no cache', async () => {
    const seen = wire.provider.requests.length;
    const reply = await send(await keyWith(null), fresh(), ['x-gateway-cache: only-if-cached']);
    expect([reply.status, reply.header('x-gateway-error')]).toEqual([504, 'not_cached']);
    expect(wire.provider.requests.length).toBe(seen);
    expect((await send(await keyWith(null), fresh(), ['x-gateway-cache: no-store'])).status).toBe(200);
  });

  it('is rejected if it is unknown or repeated', async () => {
    const key = await keyWith({ ttl_seconds: 600 });
    wire.expectRejection(await send(key, fresh(), ['x-gateway-cache: no-stroe']), 400, 'invalid_request');
    const twice = ['x-gateway-cache: no-store', 'x-gateway-cache: no-cache'];
    wire.expectRejection(await send(key, fresh(), twice), 400, 'invalid_request');
  });
});

it('forgets a response after its time, and at once when the time is lowered', async () => {
  const issued = await gateway.admin<{ id: string; key: string }>('POST', '/keys', {
    team: 'default',
    name: 'short',
    cache: { ttl_seconds: 600 },
  });
  const body = fresh();
  await send(issued.key, body);
  await untilHit(issued.key, body);
  await gateway.database.query("UPDATE idempotency_record SET lease_until = lease_until - interval '90 s'");
  expect(Number((await send(issued.key, body)).header('age'))).toBeGreaterThanOrEqual(90);
  await gateway.admin('PATCH', `/keys/${issued.id}`, { cache: { ttl_seconds: 60 } });
  await eventually(async () => !hitOf(await send(issued.key, body)));
  await untilHit(issued.key, body);
  await gateway.database.query("UPDATE idempotency_record SET expires_at = now() - interval '1 s'");
  expect((await send(issued.key, body, ['x-gateway-cache: only-if-cached'])).status).toBe(504);
  await gateway.admin('PATCH', `/keys/${issued.id}`, { cache: null });
  expect(await gateway.admin('GET', `/keys/${issued.id}`)).toMatchObject({ cache: null });
});

it('stores responses encrypted, and goes to the provider if one cannot be decrypted or read', async () => {
  const key = await keyWith({ ttl_seconds: 600 });
  const body = fresh();
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', [], 'canary-of-the-cache'));
  };
  await send(key, body);
  await untilHit(key, body);
  const dump = await gateway.database.query<{ answer: Buffer | null }>(
    'SELECT answer FROM idempotency_record',
  );
  expect(dump.some(({ answer }) => answer?.includes('canary'))).toBe(false);
  await gateway.database.query("UPDATE idempotency_record SET answer = '\\x00'");
  // What was sent lately is in memory.
  gateway.gateway.app.get(CachedResponses).forgetRecent();
  const reply = await send(key, body);
  expect([reply.status, hitOf(reply)]).toEqual([200, false]);
});

it('is no error and lacks no tokens in usage and views', async () => {
  const key = await keyWith({ ttl_seconds: 600 });
  const body = fresh();
  await send(key, body);
  await untilHit(key, body);
  await eventually(async () => {
    const rows = await gateway.database.query("SELECT 1 FROM request_log WHERE outcome = 'cached'");
    return rows.length > 0;
  });
  const errors = await gateway.database.query<{ count: number }>(
    "SELECT count(*)::int AS count FROM request_log l WHERE outcome = 'cached' AND EXISTS (SELECT FROM errors_by_key_hour e WHERE e.key_id = l.key_id AND l.key_id = (SELECT id FROM gateway_key ORDER BY id DESC LIMIT 1))",
  );
  expect(errors[0]!.count).toBe(0);
  const definitions = await gateway.database.query<{ definition: string }>(
    "SELECT definition FROM pg_views WHERE schemaname = current_schema() AND definition LIKE '%replayed%'",
  );
  expect(definitions.length).toBeGreaterThan(0);
  for (const { definition } of definitions) expect(definition).toContain("'cached'");
});
