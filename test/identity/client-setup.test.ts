import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import tls from 'node:tls';
import { ClientSetupService } from '../../src/identity/people/client-setup.service.js';
import type { Settings } from '../../src/config/settings.js';
import { TEST_CA, TlsProvider } from '../support/tls-provider.js';

let server: TlsProvider;
let silent: Server;
beforeAll(async () => {
  server = await TlsProvider.start();
  silent = createServer((socket) => socket.end('no TLS')).listen(0, '127.0.0.1');
  await new Promise((resolve) => silent.once('listening', resolve));
});
afterAll(async () => {
  await server.stop();
  silent.close();
});
afterEach(() => jest.restoreAllMocks());

const setupOf = (settings: Partial<Settings>) =>
  new ClientSetupService({ signIn: 'on', ...settings } as Settings).get();

/** As NODE_EXTRA_CA_CERTS does, which is read when a process starts. */
function trustTestAuthority(): void {
  const connect = tls.connect.bind(tls) as (options: tls.ConnectionOptions) => tls.TLSSocket;
  const trusting = (options: tls.ConnectionOptions) => connect({ ...options, ca: readFileSync(TEST_CA) });
  jest.spyOn(tls, 'connect').mockImplementation(trusting as typeof tls.connect);
}

it('has the SHA-256 of the certificate that clients get, once it is verified', async () => {
  trustTestAuthority();
  const { fingerprint256 } = new X509Certificate(
    readFileSync(join(__dirname, '../support/tls/provider.pem')),
  );
  const url = `https://localhost:${server.port}`;
  expect(await setupOf({ gatewayUrl: url, publicUrl: 'http://elsewhere.test' })).toEqual({
    enabled: true,
    gateway_url: url,
    certificate_sha256: fingerprint256,
    certificate_error: null,
  });
});

it('opens one connection for all who ask at a time', async () => {
  let connections = 0;
  silent.on('connection', () => connections++);
  const { port } = silent.address() as { port: number };
  const setup = new ClientSetupService({ signIn: 'on', publicUrl: `https://127.0.0.1:${port}` } as Settings);
  await Promise.all([1, 2, 3].map(() => setup.get()));
  expect(connections).toBe(1);
  await setup.get();
  expect(connections).toBe(2);
});

it('has none of a certificate that cannot be verified, and says why', async () => {
  const shown = await setupOf({ gatewayUrl: `https://localhost:${server.port}` });
  expect([shown.certificate_sha256, shown.certificate_error]).toEqual([
    null,
    expect.stringMatching(/certificate/),
  ]);
});

it('has none of a server without TLS', async () => {
  trustTestAuthority();
  const { port } = silent.address() as { port: number };
  const url = `https://127.0.0.1:${port}`;
  const shown = await setupOf({ publicUrl: url });
  expect([shown.gateway_url, shown.certificate_sha256]).toEqual([url, null]);
  expect(shown.certificate_error).not.toBeNull();
});

it('has none over plain HTTP', async () => {
  expect(await setupOf({ signIn: 'off', publicUrl: 'http://gateway.test' })).toEqual({
    enabled: false,
    gateway_url: 'http://gateway.test',
    certificate_sha256: null,
    certificate_error: null,
  });
});
