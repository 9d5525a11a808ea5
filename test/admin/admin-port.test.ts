import { connect, createServer, type AddressInfo } from 'node:net';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { RawClient } from '../support/raw-client.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { unusedPort } from '../support/unused-port.js';

let provider: RawProvider;
let postern: TestGateway;
beforeAll(async () => {
  provider = await RawProvider.start(async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', [], 'ok'));
  });
  postern = await startTestGateway({ PROVIDER_URL: provider.url, ADMIN_PORT: '0' });
});
afterAll(async () => {
  await postern.stop();
  await provider.stop();
});

const adminUrl = () => postern.gateway.adminUrl!;
const portOf = (url: string) => Number(new URL(url).port);

async function statusOf(url: string, token: string): Promise<string> {
  const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
  await response.arrayBuffer();
  return `${response.status} ${response.headers.get('x-gateway-error') ?? ''}`.trim();
}

describe('with ADMIN_PORT', () => {
  it('there are two listeners', () => {
    expect(portOf(adminUrl())).not.toBe(portOf(postern.url));
  });

  it.each(['/v1/models', '/p/default/v1/models', '/v1', '/p', '/V1/models'])(
    '%s is not on the admin port, whatever the key',
    async (path) => {
      expect(await statusOf(adminUrl() + path, postern.key)).toBe('404 not_found');
      expect(await statusOf(adminUrl() + path, ADMIN_TOKEN)).toBe('404 not_found');
      expect(provider.requests).toHaveLength(0);
    },
  );

  it.each([
    '/admin/v1/teams',
    '/admin/v1/nothing',
    '/admin',
    '/admin?x',
    '/docs',
    '/docs/',
    '/docs-json',
    '/metrics',
    '/Admin/v1/teams',
  ])('%s is not on the port of the calls, although the token is right', async (path) => {
    expect(await statusOf(postern.url + path, ADMIN_TOKEN)).toBe('404 not_found');
  });

  it('each is where it belongs, and health is on both', async () => {
    expect(await statusOf(`${adminUrl()}/admin/v1/teams`, ADMIN_TOKEN)).toBe('200');
    expect(await statusOf(`${postern.url}/v1/models`, postern.key)).toBe('200');
    for (const url of [postern.url, adminUrl()]) {
      expect(await statusOf(`${url}/health/live`, '')).toBe('200');
      expect(await statusOf(`${url}/health/ready`, '')).toBe('200');
    }
  });

  it('a connection keeps to its side', async () => {
    const client = await RawClient.connect(portOf(adminUrl()));
    const auth = `Host: x\r\nAuthorization: Bearer ${ADMIN_TOKEN}\r\n\r\n`;
    client.send(`GET /admin/v1/teams HTTP/1.1\r\n${auth}`);
    expect((await client.answer()).head).toMatch(/^HTTP\/1\.1 200 /);
    client.send(`GET /v1/models HTTP/1.1\r\n${auth}`);
    expect((await client.answer()).head).toMatch(/^HTTP\/1\.1 404 /);
    client.destroy();
  });
});

it('a taken ADMIN_PORT is reported by name, and nothing is left running', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await new Promise((listening) => taken.once('listening', listening));
  const { port } = taken.address() as AddressInfo;
  await expect(startTestGateway({ ADMIN_PORT: String(port) }, postern.database)).rejects.toThrow(
    `127.0.0.1:${port} is in use by another process; stop it or set ADMIN_PORT to a free port`,
  );
  await new Promise((closed) => taken.close(closed));
});

it('ADMIN_PORT like PORT is one listener for everything', async () => {
  const port = String(await unusedPort());
  const one = await startTestGateway({ PORT: port, ADMIN_PORT: port }, postern.database);
  expect(one.gateway.adminUrl).toBeNull();
  expect(await statusOf(`${one.url}/admin/v1/teams`, ADMIN_TOKEN)).toBe('200');
  await one.stop();
});

it('an admin call under way ends in peace when the gateway stops, then both ports are closed', async () => {
  const stopping = await startTestGateway({ ADMIN_PORT: '0', SHUTDOWN_GRACE_MS: '20000' }, postern.database);
  const ports = [stopping.url, stopping.gateway.adminUrl!].map(portOf);
  const client = await RawClient.connect(ports[1]!);
  const body = JSON.stringify({ name: 'made while stopping' });
  client.send(
    `POST /admin/v1/teams HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${ADMIN_TOKEN}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 5)}`,
  );
  // Its head has arrived once another call on the same listener, sent later, was answered.
  await statusOf(`${stopping.gateway.adminUrl!}/health/live`, '');
  const stopped = stopping.stop();
  await eventually(async () => (await Promise.all(ports.map(isRefused))).every(Boolean));
  client.send(body.slice(5));
  expect((await client.answer()).head).toMatch(/^HTTP\/1\.1 201 /);
  await stopped;
  client.destroy();
});

const isRefused = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(false)).once('error', () => resolve(true));
    socket.once('connect', () => socket.destroy());
  });
