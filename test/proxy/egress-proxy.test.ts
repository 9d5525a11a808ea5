import { deferred } from '../support/deferred.js';
import { EgressProxy, saying, tunnel } from '../support/egress-proxy.js';
import { eventually } from '../support/eventually.js';
import { request } from '../support/raw-client.js';
import { echo, Wire } from '../support/wire.js';

let proxy: EgressProxy;
/** Gives up soon, for the calls that a proxy fails. */
let wire: Wire;
/** For the calls that must succeed, on a busy machine too. */
let patient: Wire;
beforeAll(async () => {
  proxy = await EgressProxy.start();
  const variables = { UPSTREAM_PROXY_URL: `http://user:p%40ss@${proxy.host}` };
  wire = await Wire.start({ ...variables, UPSTREAM_CONNECT_TIMEOUT_MS: '2000' });
  patient = await Wire.start(variables);
});
afterAll(async () => {
  await patient.stop();
  await wire.stop();
  await proxy.stop();
});
beforeEach(() => {
  proxy.manner = tunnel;
  wire.provider.script = echo;
  patient.provider.script = echo;
});

const CALL = 'POST /v1/chat/completions';

/** Makes the gateway open a new tunnel for its next call. */
async function dropConnections(): Promise<void> {
  for (const socket of proxy.sockets) socket.destroy();
  await Promise.all([wire, patient].flatMap(({ provider }) => provider.requests.map((req) => req.closed)));
}

it('asks for a tunnel with its credentials, and uses it for more than one call', async () => {
  for (const body of ['one', 'two']) expect((await patient.call(CALL, [], body)).body.toString()).toBe(body);
  const { host } = new URL(patient.provider.url);
  expect(proxy.heads).toHaveLength(1);
  const [line, ...headers] = proxy.heads[0]!.trimEnd().split('\r\n');
  expect(line).toBe(`CONNECT ${host} HTTP/1.1`);
  expect(headers).toContain(`host: ${host}`);
  expect(headers).toContain(`proxy-authorization: Basic ${Buffer.from('user:p@ss').toString('base64')}`);
  // The proxy's credential is the proxy's alone, and it is asked for nothing but the tunnel.
  expect(patient.provider.requests[0]!.head).not.toMatch(/proxy/i);
  expect(proxy.heads[0]).not.toContain('sk-provider');
});

it.each([
  ['rejects the credentials', 'HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 2\r\n\r\nno'],
  ['forbids the target', 'HTTP/1.1 403 Forbidden\r\n\r\n'],
  ['cannot reach the target', 'HTTP/1.1 502 Bad Gateway\r\nTransfer-Encoding: chunked\r\n\r\n'],
  ['redirects', 'HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n'],
  ['switches protocols', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'],
  ['speaks no HTTP', 'SSH-2.0-OpenSSH_9.6\r\n\r\n'],
  ['never ends its head', `HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(100_000)}`],
  ['says nothing in time', ''],
  ['only says 100', 'HTTP/1.1 100 Continue\r\n\r\n'],
])('a proxy that %s is a 502, and its connection is closed', async (_, bytes) => {
  await dropConnections();
  const seen = wire.provider.requests.length;
  proxy.manner = saying(bytes);
  const reply = await wire.call(CALL, [], '{}');
  wire.expectRejection(reply, 502, 'upstream_unreachable');
  await proxy.left();
  expect(wire.provider.requests.length).toBe(seen);
  expect(await wire.gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({
    outcome: 'upstream_error',
    error_code: 'upstream_unreachable',
  });
});

it.each(['end', 'resetAndDestroy'] as const)('a proxy that breaks off by %s is a 502', async (breakOff) => {
  await dropConnections();
  for (const said of ['', 'HTTP/1.1 20', 'HTTP/1.1 200 OK\r\n\r\n']) {
    proxy.manner = (socket) => {
      if (said !== '') socket.write(said);
      socket.resume()[breakOff]();
    };
    expect((await patient.call(CALL, [], '{}')).status).toBe(502);
  }
  proxy.manner = tunnel;
  expect((await patient.call(CALL, [], 'again')).body.toString()).toBe('again');
});

it('any 2xx opens the tunnel (RFC 9110 9.3.6), and the time to open it does not run on', async () => {
  await dropConnections();
  const release = deferred();
  const arrived = deferred();
  wire.provider.script = async (req) => {
    arrived.resolve();
    await release.promise;
    await echo(req);
  };
  proxy.manner = (socket, head) => tunnel(socket, head, '299 Fine');
  // A busy machine may use up the time to open it.
  const { pending } = await eventually(async () => {
    const pending = wire.call(CALL, [], 'slow');
    const isOpen = await Promise.race([arrived.promise.then(() => true), pending.then(() => false)]);
    return isOpen && { pending };
  });
  // Another attempt has used up the whole time by now.
  proxy.manner = saying('');
  expect((await wire.call(CALL, [], '{}')).status).toBe(502);
  release.resolve();
  expect((await pending).body.toString()).toBe('slow');
});

it('a client that leaves while the tunnel is being made takes the attempt with it', async () => {
  await dropConnections();
  const anonymous = await Wire.start({ UPSTREAM_PROXY_URL: `http://${proxy.host}` });
  const asked = deferred();
  proxy.manner = (socket) => {
    socket.resume();
    asked.resolve();
  };
  const client = await anonymous.connect();
  client.send(request(CALL, [anonymous.auth], '{}'));
  await asked.promise;
  expect(proxy.heads.at(-1)).not.toMatch(/proxy-authorization/i);
  client.destroy();
  await proxy.left();
  await anonymous.stop();
});
