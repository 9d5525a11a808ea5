import { randomUUID } from 'node:crypto';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import { RawClient, request } from '../support/raw-client.js';
import { issue, TokenServer } from '../providers/credentials/token-server.js';
import { replies, Routed } from './routed.js';

let routed: Routed;
let tokens: TokenServer;
beforeAll(async () => {
  routed = await Routed.start();
  tokens = await TokenServer.start();
  const { gateway, providers } = routed;
  const oauth2 = {
    auth: 'oauth2',
    secret: 'client-secret-0123456789',
    auth_settings: { token_url: tokens.url, client_id: 'postern' },
  };
  const aws = {
    auth: 'aws-sigv4',
    secret: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
    auth_settings: { region: 'eu-central-1', access_key_id: 'AKIAIOSFODNN7EXAMPLE' },
  };
  for (const name of ['token', 'other-token'])
    await gateway.admin('POST', '/providers', { name, url: providers.c.url, ...oauth2 });
  await gateway.admin('POST', '/providers', { name: 'signed', url: providers.c.url, ...aws });
  await gateway.admin('POST', '/providers', {
    name: 'own',
    url: providers.c.url,
    auth: 'client',
    secret: null,
  });
});
afterAll(() => routed.gateway.stop());
beforeEach(() => {
  routed.script({});
  tokens.respond = () => issue('token-of-c');
});

const LIMITED = replies('429 Too Many Requests');
const credential = () =>
  routed.providers.c.requests.at(-1)!.headers.find(([name]) => name.toLowerCase() === 'authorization')![1];
const route = (targets: string[], more: object = {}) =>
  routed.route({ targets: targets.map((provider) => ({ provider })), ...more });

it('sends a call on when there is no access token for a target, and 502 when no target is left', async () => {
  tokens.respond = () => ({ status: 500, body: {} });
  const reply = await routed.call(await route(['token', 'b']));
  expect([reply.status, reply.body.toString()]).toEqual([200, 'b']);
  expect(
    (await routed.rows(reply)).map(({ provider, outcome, error_code }) => [provider, outcome, error_code]),
  ).toEqual([
    ['token', 'retried', 'provider_credential_unavailable'],
    ['b', 'completed', null],
  ]);
  const last = await routed.call(await route(['token', 'other-token']));
  expect([last.status, last.header('x-gateway-error')]).toEqual([502, 'provider_credential_unavailable']);
  expect((await routed.rows(last)).map(({ outcome }) => outcome)).toEqual(['retried', 'upstream_error']);
  expect(routed.counts).toEqual([0, 1, 0]);
});

it('sends each target its own access token, the later ones too', async () => {
  routed.script({ a: LIMITED });
  // After the pause that a failure causes.
  const name = await route(['a', 'token']);
  await eventually(async () => (await routed.call(name)).body.toString() === 'c');
  expect(credential()).toBe('Bearer token-of-c');
});

it('signs the body for a target that needs it, also when another target had it first', async () => {
  routed.script({ a: LIMITED });
  const client = await RawClient.connect(routed.gateway.port);
  const line = `POST /p/${await route(['a', 'signed'])}/v1/chat/completions HTTP/1.1`;
  const head = [line, 'Host: x', routed.auth, 'Transfer-Encoding: chunked', 'Connection: close', '', ''];
  client.send(`${head.join('\r\n')}5\r\n{"a":\r\n3\r\n 1}\r\n0\r\n\r\n`);
  const reply = await client.answer();
  client.destroy();
  expect([reply.status, reply.body.toString()]).toEqual([200, 'c']);
  expect(credential()).toMatch(/^AWS4-HMAC-SHA256 /);
  const sent = routed.providers.c.requests.at(-1)!;
  expect(sent.headers).toContainEqual(['content-length', '8']);
  expect((await sent.body).bytes.toString()).toBe('{"a": 1}');
});

it('takes at most 25 MiB if a target needs a signature', async () => {
  const body = Buffer.alloc(25 * 1024 * 1024 + 1, ' ');
  expect((await routed.call(await route(['a', 'signed']), [], body)).status).toBe(413);
  expect((await routed.call(await route(['a', 'b']), [], body)).status).toBe(200);
});

it('caches the responses of a route apart from those of its targets, and none if callers send credentials', async () => {
  const key = await routed.gateway.createKey({ cache: { ttl_seconds: 600 } });
  const send = async (name: string, body: string, headers: string[] = []) => {
    const client = await RawClient.connect(routed.gateway.port);
    client.send(
      request(`POST /p/${name}/v1/chat/completions`, [`Authorization: Bearer ${key}`, ...headers], body),
    );
    const reply = await client.answer();
    client.destroy();
    return reply;
  };
  const only = ['x-gateway-cache: only-if-cached'];
  const body = JSON.stringify({ id: randomUUID() });
  const [plain, client] = [await route(['a', 'b']), await route(['a', 'own'])];
  await send(client, body);
  await send(plain, body);
  await eventually(async () => (await send(plain, body, only)).status === 200);
  expect((await send('a', body, only)).status).toBe(504);
  expect((await send(client, body, only)).status).toBe(504);
});

describe("the caller's own credential", () => {
  const CREDENTIAL = 'callers-own-credential-123';
  let key: string;
  beforeAll(async () => {
    key = await routed.gateway.createKey();
    const { a, b } = routed.providers;
    for (const [name, { url }] of Object.entries({ 'own-a': a, 'own-a-too': a, 'own-b': b }))
      await routed.gateway.admin('POST', '/providers', { name, url, auth: 'client', secret: null });
  });

  async function callWith(name: string): Promise<number> {
    const client = await RawClient.connect(routed.gateway.port);
    const headers = [`x-gateway-key: ${key}`, `Authorization: Bearer ${CREDENTIAL}`];
    client.send(request(`POST /p/${name}/v1/chat/completions`, headers, '{}'));
    const { status } = await client.answer();
    client.destroy();
    return status;
  }
  const sentTo = (name: 'a' | 'b') => JSON.stringify(routed.providers[name].requests).includes(CREDENTIAL);
  async function rejected(method: string, path: string, body: object): Promise<string> {
    const response = await fetch(`${routed.gateway.url}/admin/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return `${response.status} ${await response.text()}`;
  }

  it('reaches all targets on one host, and a route that would send it to two is rejected', async () => {
    routed.script({ a: LIMITED });
    const name = await route(['own-a', 'own-a-too', 'b']);
    expect(await callWith(name)).toBe(429);
    expect([sentTo('a'), sentTo('b'), routed.counts]).toEqual([true, false, [2, 0, 0]]);
    const targets = [{ provider: 'own-a' }, { provider: 'b' }, { provider: 'own-b' }];
    const why = /own-a, own-b have the auth/;
    const created = await rejected('POST', '/routes', { name: 'two-hosts', targets });
    expect([created.slice(0, 3), created]).toEqual(['400', expect.stringMatching(why)]);
    expect(await rejected('PATCH', `/routes/${name}`, { targets })).toMatch(why);
    const moved = await rejected('PATCH', '/providers/own-a-too', { url: routed.providers.b.url });
    expect([moved.slice(0, 3), moved]).toEqual(['409', expect.stringContaining(`the route ${name} would`)]);
    expect(await rejected('PATCH', '/providers/b', { auth: 'client', secret: null })).toMatch(/^409 /);
  });

  it('reaches the host of the first such target only, in a route that was stored before, even if that is disabled', async () => {
    const name = await route(['own-a', 'b']);
    const targets = JSON.stringify(['own-a', 'own-b', 'c'].map((provider) => ({ provider, models: null })));
    await routed.gateway.database.query('UPDATE route SET targets = $2, max_attempts = 3 WHERE name = $1', [
      name,
      targets,
    ]);
    routed.script({ a: LIMITED });
    // Until the gateway has read the route, b gets calls, with a credential of its own.
    await eventually(async () => (await callWith(name)) === 200 && routed.counts[2]! > 0);
    expect([sentTo('a'), sentTo('b')]).toEqual([true, false]);
    await routed.gateway.admin('PATCH', '/providers/own-a', { enabled: false });
    expect(await callWith(name)).toBe(200);
    expect(sentTo('b')).toBe(false);
    await routed.gateway.admin('PATCH', '/providers/own-a', { enabled: true });
  });
});

it('takes no WebSockets', async () => {
  const key = await routed.gateway.createKey({ websockets: true });
  const client = await RawClient.connect(routed.gateway.port);
  const headers = ['Upgrade: websocket', 'Connection: Upgrade', 'Sec-WebSocket-Version: 13'];
  client.send(
    request(`GET /p/${await route(['a', 'b'])}/v1/realtime?model=m`, [
      ...[`Authorization: Bearer ${key}`, ...headers, 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='],
    ]),
  );
  const reply = await client.answer();
  client.destroy();
  expect([reply.status, reply.body.toString()]).toEqual([426, expect.stringContaining('Routes take no')]);
  expect(routed.counts).toEqual([0, 0, 0]);
});
