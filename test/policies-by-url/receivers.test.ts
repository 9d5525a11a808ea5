import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { Scrape } from '../observability/scrape.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { RawClient, request } from '../support/raw-client.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { unusedPort } from '../support/unused-port.js';
import {
  allow,
  createPolicy,
  decide,
  deny,
  Filter,
  isSigned,
  LONG_MS,
  newSecret,
  removePolicies,
} from './filter.js';

const CHAT = '/v1/chat/completions';

let provider: RawProvider;
let filter: Filter;
let postern: TestGateway;
beforeAll(async () => {
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', ['Content-Type: application/json'], '{"model":"m-1"}'));
  });
  filter = await new Filter().listen();
  postern = await startTestGateway({ PROVIDER_URL: provider.url });
});
afterAll(async () => {
  await postern.stop();
  await filter.close();
  await provider.stop();
});
beforeEach(async () => {
  await removePolicies(postern);
  filter.asked.length = 0;
  filter.respond = allow;
  provider.requests.length = 0;
});

async function send(body = '{"model":"m"}') {
  const client = await RawClient.connect(postern.port);
  client.send(request(`POST ${CHAT}`, [`Authorization: Bearer ${postern.key}`], body));
  const reply = await client.answer();
  client.destroy();
  return reply;
}

const failures = async (reason: string) =>
  (await Scrape.of(postern.url)).sum('postern_policy_failures_total', { policy: 'dlp', reason });

/** A server that does this with each connection. */
async function rawServer(onSocket: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    onSocket(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((closed) => server.close(closed));
    },
  };
}

const code = 'pii_found';
const message = 'No.';
it.each<[string, string, Filter['respond']]>([
  ['another status', 'unexpected_status', (res) => res.writeHead(500).end('{"allow":true}')],
  ['another status of success', 'unexpected_status', (res) => res.writeHead(204).end()],
  ['no JSON', 'invalid_decision', (res) => res.end('yes')],
  ['an empty response', 'invalid_decision', (res) => res.end()],
  ['no object', 'invalid_decision', decide(true)],
  ['no decision', 'invalid_decision', decide({})],
  ['two decisions', 'invalid_decision', (res) => res.end('{"allow":false,"allow":true}')],
  ['text for true', 'invalid_decision', decide({ allow: 'true' })],
  ['a rejection without a code', 'invalid_decision', decide({ allow: false, message })],
  ['a rejection without a message', 'invalid_decision', decide({ allow: false, code })],
  ['a code with capitals', 'invalid_decision', decide({ allow: false, code: 'PII', message })],
  ['a code that is too long', 'invalid_decision', decide({ allow: false, code: 'a'.repeat(65), message })],
  [
    'a message that is too long',
    'invalid_decision',
    decide({ allow: false, code, message: 'a'.repeat(513) }),
  ],
  ['another member', 'invalid_decision', decide({ allow: true, body: '{}' })],
  ['a tag that is no text', 'invalid_decision', decide({ allow: true, tags: { a: 1 } })],
  ['a tag with a comma', 'invalid_decision', decide({ allow: true, tags: { a: '1,2' } })],
  [
    'nine tags',
    'invalid_decision',
    decide({ allow: true, tags: Object.fromEntries([...'abcdefghi'].map((name) => [name, '1'])) }),
  ],
  ['more than 64 KiB', 'response_too_large', decide({ allow: true, tags: { a: 'x'.repeat(70_000) } })],
  ['a redirect', 'redirect', (res) => res.writeHead(307, { location: '/other' }).end('{"allow":true}')],
  ['a closed connection', 'not_http', (res) => res.socket!.destroy()],
  [
    'half a response',
    'not_http',
    (res) => {
      res.writeHead(200, { 'content-length': '100' }).write('{"allow":true');
      setImmediate(() => res.socket!.destroy());
    },
  ],
])(
  'takes %s for a failure (%s), and rejects or forwards the call as the policy says',
  async (_, reason, respond) => {
    const { id } = await createPolicy(postern, filter);
    const before = await failures(reason);
    filter.respond = respond;
    const reply = await send();
    expect([reply.status, reply.header('x-gateway-error')]).toEqual([503, 'policy_unavailable']);
    expect(reply.header('retry-after')).toBe('1');
    expect(reply.header('x-should-retry')).toBeUndefined();
    expect(provider.requests).toHaveLength(0);
    expect(await failures(reason)).toBe(before + 1);
    await postern.admin('PATCH', `/policies/${id}`, { on_failure: 'allow' });
    expect((await send()).status).toBe(200);
    expect(provider.requests).toHaveLength(1);
    // A redirect is not followed.
    expect(filter.asked.map(({ path }) => path)).not.toContain('/other');
  },
);

it('takes a receiver that does not respond in time for a failure', async () => {
  await createPolicy(postern, filter, { timeout_ms: 20 });
  filter.respond = () => {};
  expect((await send()).header('x-gateway-error')).toBe('policy_unavailable');
  expect(await failures('timeout')).toBe(1);
  // Also one that has begun to respond.
  filter.respond = (res) => res.writeHead(200).write('{"allow":');
  expect((await send()).header('x-gateway-error')).toBe('policy_unavailable');
  expect(await failures('timeout')).toBe(2);
});

it('takes a receiver for a failure that nobody listens at, that is no HTTP server, or that is this gateway', async () => {
  const url = `http://127.0.0.1:${await unusedPort()}/`;
  const { id } = await createPolicy(postern, filter, { url });
  expect((await send()).status).toBe(503);
  expect(await failures('refused')).toBe(1);
  const server = await rawServer((socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n'));
  await postern.admin('PATCH', `/policies/${id}`, { url: server.url });
  expect((await send()).status).toBe(503);
  await server.stop();
  await postern.admin('PATCH', `/policies/${id}`, { url: `${postern.url}/admin/v1/teams` });
  expect((await send()).status).toBe(503);
  expect(await failures('forbidden_address')).toBe(1);
  expect(provider.requests).toHaveLength(0);
});

it('asks once more when the receiver has closed an idle connection', async () => {
  await createPolicy(postern, filter);
  expect((await send()).status).toBe(200);
  let closed = 0;
  filter.respond = (res, asked) => {
    if (closed++ === 0) res.socket!.destroy();
    else deny(res, asked);
  };
  expect((await send()).header('x-gateway-error')).toBe('policy_rejected');
  expect(filter.asked).toHaveLength(3);
  const [, first, second] = filter.asked;
  expect(second!.headers['webhook-id']).toBe(first!.headers['webhook-id']);
});

it('recovers from a receiver that was killed', async () => {
  const port = await unusedPort();
  const script = `require('http').createServer((req, res) => req.resume().on('end', () => {
    if (req.url === '/decide') res.end('{"allow":true}'); })).listen(${port}, '127.0.0.1', () => console.log('ready'))`;
  const start = async () => {
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    return child;
  };
  const killed = await start();
  const { id } = await createPolicy(postern, filter, { url: `http://127.0.0.1:${port}/decide` });
  expect((await send()).status).toBe(200);
  // It hangs there, and is killed meanwhile.
  await postern.admin('PATCH', `/policies/${id}`, { url: `http://127.0.0.1:${port}/hang` });
  const hanging = send();
  await eventually(
    async () => (await Scrape.of(postern.url)).sum('postern_policy_calls', { state: 'asking' }) === 1,
  );
  killed.kill('SIGKILL');
  expect((await hanging).header('x-gateway-error')).toBe('policy_unavailable');
  await postern.admin('PATCH', `/policies/${id}`, { url: `http://127.0.0.1:${port}/decide` });
  expect((await send()).status).toBe(503);
  const next = await start();
  expect((await send()).status).toBe(200);
  next.kill('SIGKILL');
  await once(next, 'exit');
});

it('asks about 64 calls at a time; the others wait in their order', async () => {
  await createPolicy(postern, filter);
  const held: (() => void)[] = [];
  let isOpen = false;
  let most = 0;
  let now = 0;
  filter.respond = (res, asked) => {
    most = Math.max(most, ++now);
    const respond = () => {
      now--;
      allow(res, asked);
    };
    if (isOpen) respond();
    else held.push(respond);
  };
  const calls = Array.from({ length: 100 }, () => send());
  const state = async (name: string) =>
    (await Scrape.of(postern.url)).sum('postern_policy_calls', { policy: 'dlp', state: name });
  await eventually(async () => (await state('waiting')) === 36);
  expect(await state('asking')).toBe(64);
  await eventually(() => held.length === 64);
  expect(provider.requests).toHaveLength(0);
  isOpen = true;
  for (const respond of held) respond();
  const replies = await Promise.all(calls);
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
  expect(most).toBe(64);
  expect(filter.asked).toHaveLength(100);
});

it('rejects with overloaded what waits longer than a decision may take, also where failures are allowed', async () => {
  const { id } = await createPolicy(postern, filter, { timeout_ms: LONG_MS, on_failure: 'allow' });
  filter.respond = () => {};
  // They hold all slots.
  const clients = await Promise.all(
    Array.from({ length: 64 }, async () => {
      const client = await RawClient.connect(postern.port);
      client.send(request(`POST ${CHAT}`, [`Authorization: Bearer ${postern.key}`], '{"model":"m"}'));
      return client;
    }),
  );
  await eventually(() => filter.asked.length === 64);
  await postern.admin('PATCH', `/policies/${id}`, { timeout_ms: 20 });
  const reply = await send();
  expect([reply.status, reply.header('x-gateway-error')]).toEqual([503, 'overloaded']);
  expect(filter.asked).toHaveLength(64);
  expect(provider.requests).toHaveLength(0);
  expect(await failures('overloaded')).toBe(1);
  for (const client of clients) client.reset();
  await eventually(
    async () => (await Scrape.of(postern.url)).sum('postern_policy_calls', { policy: 'dlp' }) === 0,
  );
  filter.respond = allow;
  await postern.admin('PATCH', `/policies/${id}`, { timeout_ms: LONG_MS });
  expect((await send()).status).toBe(200);
});

it('signs with a new secret from the response to its change on, on connections that were open', async () => {
  const [old, next] = [newSecret(), newSecret()];
  const { id } = await createPolicy(postern, filter, { secret: old });
  await send();
  await postern.admin('PATCH', `/policies/${id}`, { secret: next });
  await send();
  const [first, second] = filter.asked;
  expect([isSigned(first!, old), isSigned(first!, next)]).toEqual([true, false]);
  expect([isSigned(second!, old), isSigned(second!, next)]).toEqual([false, true]);
});
