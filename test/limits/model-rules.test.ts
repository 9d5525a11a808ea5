import { brotliCompressSync, gzipSync } from 'node:zlib';
import { matchesPattern } from '../../src/limits/model-pattern.js';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { RawClient, request } from '../support/raw-client.js';
import { answer, chunk, LAST_CHUNK, RawProvider, STREAM_HEAD } from '../support/raw-provider.js';
import { countSteps } from '../support/steps.js';

let provider: RawProvider;
let postern: TestGateway;
beforeAll(async () => {
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', [], 'forwarded'));
  });
  postern = await startTestGateway({ PROVIDER_URL: provider.url });
});
afterAll(async () => {
  await postern.stop();
  await provider.stop();
});

async function call(key: string, model: string): Promise<number> {
  const response = await fetch(`${postern.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model }),
  });
  await response.arrayBuffer();
  return response.status;
}

async function refused(method: string, path: string, body: unknown): Promise<[number, string]> {
  const response = await fetch(`${postern.url}/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const { error } = (await response.json()) as { error: { message: string } };
  return [response.status, error.message];
}

never.each([
  ['gpt-5', 'gpt-5', true],
  ['gpt-5', 'gpt-5-mini', false],
  ['gpt-5*', 'gpt-5', true],
  ['gpt-5*', 'gpt-5-mini', true],
  ['*-mini', 'gpt-5-mini', true],
  ['*-mini', 'gpt-5-mini-2', false],
  ['gpt-*-mini', 'gpt-5-mini', true],
  ['gpt-*-mini', 'gpt-mini', false],
  ['*gpt*mini*', 'xgptymini', true],
  ['a*a*b', 'aab', true],
  ['a*a*b', 'ab', false],
  ['*', '', true],
  ['**', 'x', true],
  ['', 'x', false],
  ['gpt.5', 'gpt-5', false],
  ['GPT-5', 'gpt-5', false],
  ['a*b', 'a\nb', true],
])('%s and %s: %s', (pattern, name, matches) => {
  expect(matchesPattern(pattern, name)).toBe(matches);
});

it('compares the longest pattern with the longest name in few steps', async () => {
  const module = new URL('../../src/limits/model-pattern.js', import.meta.url).href;
  const [pattern, name] = [`${'*a'.repeat(63)}b`, 'a'.repeat(1_024)];
  const { steps, result } = await countSteps<boolean>(module, 'matchesPattern', pattern, name);
  expect(result).toBe(false);
  expect(steps).toBeLessThan(pattern.length * name.length);
});

it('applies the list of the key and the list of its team; null allows all, [] none', async () => {
  const team = await postern.admin<{ id: string; models: unknown; stream_usage: string }>('POST', '/teams', {
    name: 'listed',
    models: ['gpt-*', 'claude-*'],
  });
  expect(team).toMatchObject({ models: ['gpt-*', 'claude-*'], stream_usage: 'as_sent' });
  const issued = await postern.admin<{ id: string; key: string; models: unknown }>('POST', '/keys', {
    team: 'listed',
    name: 'a',
    models: ['*-mini', '*-mini'],
  });
  expect(issued.models).toEqual(['*-mini']);
  expect(await call(issued.key, 'gpt-5-mini')).toBe(200);
  expect(await call(issued.key, 'gpt-5')).toBe(403);
  expect(await call(issued.key, 'o3-mini')).toBe(403);

  const changed = await postern.admin('PATCH', `/keys/${issued.id}`, { models: null });
  expect(changed).toMatchObject({ models: null });
  await eventually(async () => (await call(issued.key, 'gpt-5')) === 200);
  expect(await call(issued.key, 'o3-mini')).toBe(403);
  expect(await postern.admin('PATCH', `/teams/${team.id}`, { models: null })).toMatchObject({ models: null });
  await eventually(async () => (await call(issued.key, 'o3-mini')) === 200);
  await postern.admin('PATCH', `/keys/${issued.id}`, { models: [] });
  await eventually(async () => (await call(issued.key, 'gpt-5')) === 403);
  expect(await postern.admin('GET', `/keys/${issued.id}`)).toMatchObject({ models: [] });

  const { data } = await postern.admin<{ data: { before: object; after: object }[] }>(
    'GET',
    '/audit?limit=3',
  );
  expect(data.map(({ before, after }) => [before, after])).toEqual([
    [{ models: null }, { models: [] }],
    [{ models: ['gpt-*', 'claude-*'] }, { models: null }],
    [{ models: ['*-mini'] }, { models: null }],
  ]);
});

it('changes nothing when the rules stay the same', async () => {
  const rules = { models: ['a'], stream_usage: 'require' };
  const team = await postern.admin<{ id: string }>('POST', '/teams', { name: 'same', ...rules });
  expect(await postern.admin('PATCH', `/teams/${team.id}`, rules)).toMatchObject({ ...rules, version: 1 });
});

it.each([
  [{ models: 'gpt-5' }, /^models: must be a list/],
  [{ models: [5] }, /^models\.0: must be a list of model names/],
  [{ models: [''] }, /^models\.0: must be 1 to 128/],
  [{ models: ['x'.repeat(129)] }, /^models\.0: must be 1 to 128/],
  [{ models: ['a b'] }, /^models\.0: must be 1 to 128 visible ASCII/],
  [{ models: Array.from({ length: 101 }, (_, i) => `m${i}`) }, /^models: must not have more than 100/],
  [{ stream_usage: 'never' }, /^stream_usage: must be as_sent, require or ask/],
  [{ stream_usage: null }, /^stream_usage: must be as_sent, require or ask/],
])('rejects %j', async (rules, message) => {
  expect(await refused('POST', '/teams', { name: 't', ...rules })).toEqual([
    400,
    expect.stringMatching(message),
  ]);
  const key = { team: 'default', name: 'k', ...rules };
  expect(await refused('POST', '/keys', key)).toEqual([400, expect.stringMatching(message)]);
});

describe('GET /v1/models', () => {
  const entry = (id: string) => `{"id": "${id}", "object":"model",  "n":1.0}`;
  let key: string;
  beforeAll(async () => {
    key = await postern.createKey({ models: ['gpt-5*'] });
  });

  async function list(head: string[], body: string | Buffer, by = key, status = '200 OK') {
    provider.script = async ({ body: sent, socket }) => {
      await sent;
      socket.write(answer(status, ['Content-Type: application/json', ...head], body));
    };
    const client = await RawClient.connect(postern.port);
    client.send(request('GET /v1/models?limit=9', [`Authorization: Bearer ${by}`, 'Accept-Encoding: gzip']));
    const reply = await client.answer();
    client.destroy();
    return reply;
  }

  never.each([
    ['the first', ['o3', 'gpt-5', 'gpt-5-mini'], '{ "object":"list","data": [ A ,\nB ] }'],
    ['the middle one', ['gpt-5', 'o3', 'gpt-5-mini'], '{ "object":"list","data": [ A ,\nB ] }'],
    ['the last', ['gpt-5', 'gpt-5-mini', 'o3'], '{ "object":"list","data": [ A ,\nB ] }'],
    ['several', ['a', 'b', 'gpt-5', 'c', 'd', 'gpt-5-mini', 'e'], '{ "object":"list","data": [ A ,\nB ] }'],
  ])('cuts out %s, and leaves every other byte', async (_, ids, expected) => {
    const separated = ids.map(entry).join(' ,\n');
    const reply = await list([], `{ "object":"list","data": [ ${separated} ] }`);
    const whole = expected.replace('A', entry('gpt-5')).replace('B', entry('gpt-5-mini'));
    expect(reply.body.toString()).toBe(whole);
    expect(reply.header('content-length')).toBe(String(whole.length));
    expect(reply.header('x-gateway-altered')).toBe('models');
    const row = await postern.row(reply.header('x-gateway-request-id')!);
    expect(row).toMatchObject({
      outcome: 'completed',
      status: 200,
      altered: 'models',
      response_bytes: String(whole.length),
    });
  });

  it('cuts out all', async () => {
    const reply = await list([], `{"data":[${entry('a')}, ${entry('b')}],"has_more":false}`);
    expect(reply.body.toString()).toBe('{"data":[],"has_more":false}');
  });

  it.each([
    ['a bare list', '[{"id":"o3"},{"id":"gpt-5"}]', '[{"id":"gpt-5"}]'],
    ['names', '{"models":[{"name":"o3"},{"name":"gpt-5"}]}', '{"models":[{"name":"gpt-5"}]}'],
    ['an entry without a name', '{"data":[{},{"id":"gpt-5"}]}', '{"data":[{"id":"gpt-5"}]}'],
  ])('reads %s', async (_, body, expected) => {
    expect((await list([], body)).body.toString()).toBe(expected);
  });

  it.each<[string, string, (body: string) => Buffer]>([
    ['gzip', 'gzip', (body) => gzipSync(body)],
    ['br', 'br', (body) => brotliCompressSync(body)],
  ])('reads a list in %s, and sends what is left uncompressed', async (_, coding, compress) => {
    const body = `{"data":[${entry('gpt-5')},${entry('o3')}]}`;
    const reply = await list([`Content-Encoding: ${coding}`, 'X-Other: 1'], compress(body));
    expect(reply.body.toString()).toBe(`{"data":[${entry('gpt-5')}]}`);
    expect(reply.header('content-encoding')).toBeUndefined();
    expect(reply.header('x-other')).toBe('1');
  });

  it('keeps the bytes and headers of a list with nothing to cut, compressed or not', async () => {
    const body = gzipSync(`{"data":[${entry('gpt-5')}]}`);
    const reply = await list(['Content-Encoding: gzip', 'ETag: "1"'], body);
    expect(reply.body.equals(body)).toBe(true);
    expect(reply.header('content-encoding')).toBe('gzip');
    expect(reply.header('x-gateway-altered')).toBeUndefined();
    expect(await postern.row(reply.header('x-gateway-request-id')!)).toMatchObject({ altered: null });
  });

  it('keeps a chunked list chunked', async () => {
    provider.script = ({ socket }) => {
      socket.write(STREAM_HEAD.replace('text/event-stream', 'application/json'));
      for (const part of ['{"data":[{"id":', '"o3"},{"id":"gpt', '-5"}]}']) socket.write(chunk(part));
      socket.write(LAST_CHUNK);
    };
    const client = await RawClient.connect(postern.port);
    client.send(request('GET /v1/models', [`Authorization: Bearer ${key}`]));
    const reply = await client.answer();
    client.destroy();
    expect(reply.header('transfer-encoding')).toBe('chunked');
    expect(reply.body.toString()).toBe('{"data":[{"id":"gpt-5"}]}');
  });

  never.each([
    ['cut off', [], '{"data":[{"id":"o3"}'],
    ['no list', [], '{"error":"x"}'],
    ['a text', [], '"o3"'],
    ['an unknown coding', ['Content-Encoding: x-new'], '{"data":[]}'],
    ['damaged gzip', ['Content-Encoding: gzip'], 'xxxx'],
    ['a range', [], '"o3"},', '206 Partial Content'],
    ['too large', [], `{"data":[${' '.repeat(9_000_000)}]}`],
  ])('sends 502 in place of a list that it cannot read: %s', async (_, head, body, status = '200 OK') => {
    const reply = await list(head, body, key, status);
    expect([reply.status, reply.header('x-gateway-error')]).toEqual([502, 'upstream_invalid_response']);
    expect(reply.body.toString()).not.toContain('o3');
    const row = await postern.row(reply.header('x-gateway-request-id')!);
    expect(row).toMatchObject({ outcome: 'upstream_error', status: 502, altered: null });
  });

  it('passes errors of the provider, and empty responses', async () => {
    expect((await list([], 'no', key, '401 Unauthorized')).body.toString()).toBe('no');
    expect((await list([], '', key, '304 Not Modified')).status).toBe(304);
    expect((await list([], '')).status).toBe(200);
  });

  it('passes the whole list for a key without rules', async () => {
    const body = `{"data":[${entry('o3')}]}`;
    const reply = await list([], body, postern.key);
    expect(reply.body.toString()).toBe(body);
    expect(reply.header('x-gateway-altered')).toBeUndefined();
  });
});
