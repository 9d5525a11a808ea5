import { Socket } from 'node:net';
import { Logger } from '@nestjs/common';
import { generateKey } from '../../src/keys/key-secret.js';
import { RejectionLog } from '../../src/proxy/http/rejection-log.js';
import { GatewayError } from '../../src/errors/gateway-error.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { RawClient, request } from '../support/raw-client.js';
import { answer, RawProvider } from '../support/raw-provider.js';

let provider: RawProvider;
let postern: TestGateway;
let lines: string[];
beforeEach(async () => {
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', [], 'ok'));
  });
  postern = await startTestGateway({ PROVIDER_URL: provider.url, LOG_LEVEL: 'warn' });
  lines = [];
  const keep = (message: unknown) => void lines.push(String(message));
  Logger.overrideLogger({ log: keep, warn: keep, error: keep, fatal: keep });
});
afterEach(async () => {
  await postern.stop();
  await provider.stop();
});

async function call(line: string, headers: string[]): Promise<string | undefined> {
  const client = await RawClient.connect(postern.port);
  client.send(request(line, headers));
  const reply = await client.answer();
  client.destroy();
  return reply.header('x-gateway-error');
}

const rejections = () => lines.filter((line) => line.includes('Rejected request '));
const ID = '[0-9a-f]{8}-[0-9a-f-]{27}';

it('tells one line a minute for each code and key, by its prefix alone', async () => {
  const unknown = generateKey();
  for (let i = 0; i < 3; i++) {
    expect(await call('POST /v1/chat/completions', [`Authorization: Bearer ${unknown}`])).toBe(
      'invalid_api_key',
    );
    expect(await call('GET /v1/files', [`x-api-key: ${postern.key}`])).toBe('endpoint_not_allowed');
    expect(await call('POST /v1/chat/completions', [])).toBe('invalid_api_key');
    expect(await call('POST /v1/chat/completions', [`Authorization: Basic ${unknown}`])).toBe(
      'invalid_api_key',
    );
    expect(await call('POST /v1/chat/completions', ['api-key: ptn_short'])).toBe('invalid_api_key');
    expect(await call(`GET /v1/models?access_token=${unknown}`, [])).toBe('credential_in_query');
    expect(await call('BAD\tREQUEST', [])).toBe('invalid_request');
  }
  const told = rejections().map((line) => line.replace(new RegExp(ID), '<id>'));
  expect(told).toEqual([
    `Rejected request <id>: invalid_api_key, key ${unknown.slice(0, 12)}, from 127.0.0.1`,
    `Rejected request <id>: endpoint_not_allowed, key ${postern.key.slice(0, 12)}, from 127.0.0.1`,
    'Rejected request <id>: invalid_api_key, key none, from 127.0.0.1',
    'Rejected request <id>: invalid_api_key, key malformed, from 127.0.0.1',
    'Rejected request <id>: credential_in_query, key none, from 127.0.0.1',
    'Rejected request <id>: invalid_request (Parse Error: Invalid method encountered (HPE_INVALID_METHOD)), key none, from 127.0.0.1',
  ]);
  for (const key of [unknown, postern.key]) expect(lines.join('\n')).not.toContain(key.slice(0, 13));
});

it('has no line for a HEAD without a key, which agents send to their base URL', async () => {
  const head = async (path: string, ...headers: string[]) => {
    const client = await RawClient.connect(postern.port);
    client.send(request(`HEAD ${path}`, headers));
    const reply = await client.answer({ bodyless: true });
    client.destroy();
    return [reply.status, reply.header('x-gateway-error')];
  };
  const paths = ['/', '/p/default', '/api/hello', '/p/default/api/hello'];
  expect(await Promise.all(paths.map((path) => head(path)))).toEqual([
    [404, 'not_found'],
    [404, 'not_found'],
    [404, 'not_found'],
    [401, 'invalid_api_key'],
  ]);
  expect(rejections()).toEqual([]);
  // They hide no later line.
  expect(await head('/v1/models', 'x-api-key: ptn_short')).toEqual([401, 'invalid_api_key']);
  expect(await call('POST /chat/completions', [])).toBe('not_found');
  expect(rejections()).toHaveLength(2);
  const metrics = await fetch(`${postern.url}/metrics`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  expect(await metrics.text()).toContain('postern_refusals_total{code="not_found"} 4\n');
});

it('does not become a flood of lines when somebody makes up keys', async () => {
  const client = await RawClient.connect(postern.port);
  for (let i = 0; i < 200; i++) {
    client.send(request('POST /v1/chat/completions', [`Authorization: Bearer ${generateKey()}`]));
    await client.answer();
  }
  client.destroy();
  // Past the look-ups that one address may cause in a second the code is another one.
  for (const code of ['invalid_api_key', 'overloaded']) {
    const told = rejections().filter((line) => line.includes(`: ${code},`));
    expect(told.length).toBeLessThanOrEqual(51);
  }
  expect(rejections().some((line) => line.includes('key others,'))).toBe(true);
});

it('leaves no rejection out of its counts, also of keys that made room for others', () => {
  const log = new RejectionLog({ trustedProxies: [], requestLogClient: 'full' });
  const clock = jest.spyOn(performance, 'now').mockReturnValue(1_000);
  const reject = (key: string) =>
    log.addRequest(
      new GatewayError('invalid_api_key'),
      {
        rawHeaders: ['Authorization', `Bearer ${key}`],
        headers: {},
        socket: new Socket(),
      } as unknown as Parameters<RejectionLog['addRequest']>[1],
      'id',
    );
  const round = () =>
    Array.from({ length: 50 }, generateKey).forEach((key) => [1, 2, 3].forEach(() => reject(key)));
  round();
  clock.mockReturnValue(70_000);
  round();
  reject(generateKey());
  jest.restoreAllMocks();
  const told = lines.map((line) => 1 + Number(/\((\d+) more/.exec(line)?.[1] ?? 0));
  // Of this minute: two of each of 49 keys, and of the others all but their line.
  const silent = 2 * 49 + 3;
  expect(told.reduce((sum, count) => sum + count) + silent).toBe(301);
});
