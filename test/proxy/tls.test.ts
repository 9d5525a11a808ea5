import { startTestGateway } from '../support/gateway.js';
import { TlsProvider } from '../support/tls-provider.js';

it('a certificate nobody vouches for is a 502 even where verification is switched off, and sees no secret', async () => {
  const provider = await TlsProvider.start();
  // Read at each handshake. It prints a warning, once.
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
  const gateway = await startTestGateway({ PROVIDER_URL: `https://127.0.0.1:${provider.port}` });
  const headers = { authorization: `Bearer ${gateway.key}` };
  const response = await fetch(`${gateway.url}/v1/models/a`, { headers });
  delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  expect([response.status, response.headers.get('x-gateway-error')]).toEqual([502, 'upstream_unreachable']);
  expect(provider.authorizations).toEqual([]);
  await gateway.stop();
  await provider.stop();
});
