import { gzipSync } from 'node:zlib';
import { EgressProxy } from '../support/egress-proxy.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { RawClient, request } from '../support/raw-client.js';
import { answer, chunk, LAST_CHUNK, RawProvider } from '../support/raw-provider.js';

let provider: RawProvider;
let postern: TestGateway;
let requiring: string;
let asking: string;
beforeAll(async () => {
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', [], 'forwarded'));
  });
  postern = await startTestGateway({ PROVIDER_URL: provider.url });
  requiring = await postern.createKey({ stream_usage: 'require' });
  asking = await postern.createKey({ stream_usage: 'ask' });
});
afterAll(async () => {
  await postern.stop();
  await provider.stop();
});

async function send(key: string, body: string | Buffer, path = '/v1/chat/completions', ...head: string[]) {
  const client = await RawClient.connect(postern.port);
  const type = head.some((header) => /^content-type/i.test(header)) ? [] : ['Content-Type: application/json'];
  client.send(request(`POST ${path}`, [`Authorization: Bearer ${key}`, ...type, ...head], body));
  const reply = await client.answer();
  client.destroy();
  return reply;
}

const sent = async () => (await provider.requests.at(-1)!.body).bytes.toString();

const ASKED: string[] = [
  '{"model":"m"}',
  '{"model":"m","stream":false}',
  '{"model":"m","stream":null}',
  '{"stream":true,"stream_options":{"include_usage":true}}',
  '{"stream_options" : { "x":1, "include_usage" : true } , "stream":true}',
];
const NOT_ASKED: string[] = [
  '{"stream":true}',
  '{"\\u0073tream":true}',
  '{"Stream":true}',
  '{"stream":"true"}',
  '{"stream":1}',
  '{"stream":false,"stream":true}',
];
const ASKED_WRONGLY: string[] = [
  '{"stream":true,"stream_options":{"include_usage":false}}',
  '{"stream":true,"stream_options":{}}',
  '{"stream":true,"stream_options":null}',
  '{"stream":true,"x":{"stream_options":{"include_usage":true}},"stream_options":1}',
  '{"stream":true,"stream_options":{"include_usage":true},"stream_options":{}}',
];

describe('require', () => {
  it.each(ASKED)('forwards %s as it is', async (body) => {
    expect((await send(requiring, body)).status).toBe(200);
    expect(await sent()).toBe(body);
  });

  it.each([...NOT_ASKED, ...ASKED_WRONGLY])('rejects %s', async (body) => {
    const count = provider.requests.length;
    const reply = await send(requiring, body);
    expect([reply.status, reply.header('x-gateway-error')]).toEqual([400, 'usage_required']);
    expect(reply.header('x-should-retry')).toBe('false');
    expect(JSON.parse(reply.body.toString())).toEqual({
      error: {
        message:
          'Streams of this gateway key must report their usage. Add "stream_options": {"include_usage": true} to the request.',
        type: 'invalid_request_error',
        param: null,
        code: 'usage_required',
      },
    });
    expect(provider.requests).toHaveLength(count);
  });

  it.each<[string, string | Buffer, string[]]>([
    ['JSON that is not', '{"stream":', []],
    ['gzip', gzipSync('{"stream":true}'), ['Content-Encoding: gzip']],
    ['another type', '{"stream":true}', ['Content-Type: text/plain']],
  ])('rejects a body that cannot be read: %s', async (_, body, head) => {
    const reply = await send(requiring, body, '/v1/completions', ...head);
    expect([reply.status, reply.header('x-gateway-error')]).toEqual([400, 'usage_required']);
  });

  it.each(['/v1/responses', '/v1/messages', '/v1/embeddings'])('does not concern %s', async (path) => {
    expect((await send(requiring, '{"stream":true}', path)).status).toBe(200);
  });
});

describe('ask', () => {
  never.each(NOT_ASKED)('adds stream_options to %s and changes no other byte', async (body) => {
    const reply = await send(asking, body);
    expect(reply.status).toBe(200);
    expect(await sent()).toBe(`{"stream_options":{"include_usage":true},${body.slice(1)}`);
    expect(reply.header('x-gateway-altered')).toBe('stream_usage');
    expect(await postern.row(reply.header('x-gateway-request-id')!)).toMatchObject({
      altered: 'stream_usage',
      request_bytes: String(body.length),
    });
  });

  never.each([...ASKED, ...ASKED_WRONGLY])('leaves %s as it is', async (body) => {
    const reply = await send(asking, body);
    expect(await sent()).toBe(body);
    expect(reply.header('x-gateway-altered')).toBeUndefined();
    expect(await postern.row(reply.header('x-gateway-request-id')!)).toMatchObject({ altered: null });
  });

  it('leaves what it cannot read as it is', async () => {
    const body = '{"stream":true, "x":';
    expect((await send(asking, body)).status).toBe(200);
    expect(await sent()).toBe(body);
  });

  it('keeps the framing, and every header but Content-Length', async () => {
    const body = ' \n{ "stream":true }';
    await send(asking, '{"x":1}', undefined, 'X-A: 1', 'Content-Length: 7', 'x-b: 2');
    const plain = provider.requests.at(-1)!.head;
    await send(asking, body, undefined, 'X-A: 1', `Content-Length: ${body.length}`, 'x-b: 2');
    const added = ' \n{"stream_options":{"include_usage":true}, "stream":true }';
    expect(await sent()).toBe(added);
    expect(provider.requests.at(-1)!.head).toBe(plain.replace('length: 7', `length: ${added.length}`));
    const client = await RawClient.connect(postern.port);
    const head = [
      `Authorization: Bearer ${asking}`,
      'Content-Type: application/json',
      'Transfer-Encoding: chunked',
    ];
    client.send(request('POST /v1/chat/completions', head));
    for (const part of [body.slice(0, 9), body.slice(9)]) client.send(chunk(part));
    client.send(LAST_CHUNK);
    expect((await client.answer()).status).toBe(200);
    client.destroy();
    expect(await sent()).toBe(added);
    expect(provider.requests.at(-1)!.head).toMatch(/transfer-encoding: chunked/i);
  });

  it('works on deployments of Azure and behind the path of a provider', async () => {
    const key = await postern.createKey({ stream_usage: 'ask', endpoints: 'all' });
    const path = '/p/default/openai/deployments/d/chat/completions?api-version=1';
    expect((await send(key, '{"stream":true}', path)).header('x-gateway-altered')).toBe('stream_usage');
  });

  it('compares a repeated call by what the client sent, and says the same of its response', async () => {
    const key = await postern.createKey({ stream_usage: 'ask', idempotency: 'replay' });
    const once = await send(key, '{"stream":true}', undefined, 'Idempotency-Key: a');
    const again = await send(key, '{"stream":true}', undefined, 'Idempotency-Key: a');
    expect(again.header('idempotent-replayed')).toBe('true');
    expect([once, again].map((reply) => reply.header('x-gateway-altered'))).toEqual([
      'stream_usage',
      'stream_usage',
    ]);
  });
});

it('applies the rule of the team too: asks, and rejects what then still reports no usage', async () => {
  await postern.admin('POST', '/teams', { name: 'strict', stream_usage: 'require' });
  const key = await postern.createKey({ team: 'strict' });
  expect((await send(key, '{"stream":true}')).status).toBe(400);
  const both = await postern.createKey({ team: 'strict', stream_usage: 'ask' });
  expect((await send(both, '{"stream":true}')).status).toBe(200);
  expect((await send(both, ASKED_WRONGLY[0]!)).status).toBe(400);
});

describe('providers that reject stream_options', () => {
  const STREAM = '{"model":"m","stream":true}';
  let named: TestGateway;
  let proxy: EgressProxy;
  /** Sends a stream with a key that asks for its usage, requires it, or both. */
  const stream = async (usage: string, path: string, body = STREAM) => {
    const members = { stream_usage: usage === 'both' ? 'ask' : usage, endpoints: 'all' };
    const key = await named.createKey({ ...members, ...(usage === 'both' && { team: 'strict' }) });
    const client = await RawClient.connect(named.port);
    client.send(
      request(`POST ${path}`, [`Authorization: Bearer ${key}`, 'Content-Type: application/json'], body),
    );
    const reply = await client.answer();
    client.destroy();
    const said = reply.header('x-gateway-altered') ?? reply.header('x-gateway-error');
    return [reply.status, said, reply] as const;
  };

  beforeAll(async () => {
    // It connects to this machine, whatever the name.
    proxy = await EgressProxy.start();
    named = await startTestGateway({ UPSTREAM_PROXY_URL: `http://${proxy.host}` });
    await named.admin('POST', '/teams', { name: 'strict', stream_usage: 'require' });
    const { port } = new URL(provider.url);
    const hosts = { mistral: 'api.mistral.ai', cohere: 'api.cohere.com', other: 'mistral.example.com' };
    for (const [name, host] of Object.entries(hosts))
      await named.admin('POST', '/providers', {
        name,
        url: `http://${host}:${port}`,
        secret: 'sk-0123456789',
      });
    for (const [name, first] of [
      ['mixed', 'mistral'],
      ['reverse', 'other'],
    ] as const)
      await named.admin('POST', '/routes', {
        name,
        targets: [{ provider: first }, { provider: first === 'other' ? 'mistral' : 'other' }],
      });
  });
  afterAll(async () => {
    await named.stop();
    await proxy.stop();
  });

  it.each([
    ['ask', STREAM],
    ['require', STREAM],
    ['both', STREAM],
    ['require', '{"stream":'],
  ])('Mistral, which always reports the usage, gets what was sent: %s, %s', async (usage, body) => {
    expect((await stream(usage, '/p/mistral/v1/chat/completions', body)).slice(0, 2)).toEqual([
      200,
      undefined,
    ]);
    expect(await sent()).toBe(body);
  });

  it('another host gets it, whatever its price list', async () => {
    expect((await stream('ask', '/p/other/v1/chat/completions'))[1]).toBe('stream_usage');
    expect((await stream('require', '/p/other/v1/chat/completions'))[1]).toBe('usage_required');
  });

  it('Cohere gets what was sent, and nothing where the usage is required', async () => {
    const path = '/p/cohere/compatibility/v1/chat/completions';
    expect((await stream('ask', path)).slice(0, 2)).toEqual([200, undefined]);
    expect(await sent()).toBe(STREAM);
    for (const usage of ['require', 'both']) {
      const [status, code, reply] = await stream(usage, path);
      expect([status, code]).toEqual([400, 'usage_required']);
      expect(reply.body.toString()).toContain('Use its endpoint /v2/chat.');
    }
  });

  it('a route adds it for each target that accepts it', async () => {
    const added = `{"stream_options":{"include_usage":true},${STREAM.slice(1)}`;
    for (const [name, first, second] of [
      ['mixed', STREAM, added],
      ['reverse', added, STREAM],
    ]) {
      const count = provider.requests.length;
      const { script } = provider;
      provider.script = async ({ body, socket }) => {
        await body;
        socket.write(answer(provider.requests.length === count + 1 ? '429 X' : '200 OK', []));
      };
      const [status, altered, reply] = await stream('both', `/p/${name}/v1/chat/completions`);
      provider.script = script;
      expect([status, altered]).toEqual([200, second === added ? 'stream_usage' : undefined]);
      const bodies = await Promise.all(provider.requests.slice(count).map(({ body }) => body));
      expect(bodies.map(({ bytes }) => bytes.toString())).toEqual([first, second]);
      // The row of the first attempt.
      expect(await named.row(reply.header('x-gateway-request-id')!)).toMatchObject({
        altered: first === added ? 'stream_usage' : null,
      });
    }
  });
});

never('as_sent changes and rejects nothing', async () => {
  for (const body of [...NOT_ASKED, ...ASKED_WRONGLY]) {
    expect((await send(postern.key, body)).status).toBe(200);
    expect(await sent()).toBe(body);
  }
});
