import { createDatabase, type TestDatabase } from '../support/database.js';
import { EgressProxy } from '../support/egress-proxy.js';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN, PROVIDER_KEY } from '../support/gateway.js';
import type { GatewayProcess } from '../support/process.js';
import { TEST_CA, TlsProvider } from '../support/tls-provider.js';
import { Workplace } from '../support/workplace.js';

let database: TestDatabase;
let place: Workplace;
let provider: TlsProvider;
let decoy: EgressProxy;
beforeAll(async () => {
  [database, place, provider, decoy] = await Promise.all([
    createDatabase(),
    Workplace.make(),
    TlsProvider.start(),
    EgressProxy.start(),
  ]);
});
afterAll(async () => {
  await place.remove();
  await provider.stop();
  await decoy.stop();
  await database.drop();
});

let key = '';

async function start(variables: Record<string, string>): Promise<{ gateway: GatewayProcess; url: string }> {
  const gateway = place.gateway({ DATABASE_URL: database.url, PROVIDER_KEY, ADMIN_TOKEN, ...variables });
  const url = await gateway.ready();
  key ||= await gateway.firstKey();
  // The gateway tests PROVIDER_KEY once after its start: a request that no client sent.
  await eventually(() => provider.authorizations.length > 0);
  provider.authorizations.length = 0;
  return { gateway, url };
}

const get = (url: string) => fetch(url, { headers: { authorization: `Bearer ${key}` } });

/** Starts the build as it ships with these settings, makes one call and ends it. */
async function call(variables: Record<string, string>): Promise<Response> {
  const { gateway, url } = await start(variables);
  const response = await get(`${url}/v1/models/a`);
  const body = await response.text();
  await gateway.stop();
  return new Response(body, response);
}

const proxied = () => {
  const url = `http://${decoy.host}`;
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'all_proxy'];
  return { ...Object.fromEntries(names.map((name) => [name, url])), NODE_USE_ENV_PROXY: '1' };
};

it('NODE_EXTRA_CA_CERTS makes it trusted; proxies of the environment are not used', async () => {
  const response = await call({
    PROVIDER_URL: `https://127.0.0.1:${provider.port}`,
    NODE_EXTRA_CA_CERTS: TEST_CA,
    ...proxied(),
  });
  expect([response.status, await response.text()]).toEqual([200, '/v1/models/a']);
  expect(provider.authorizations.splice(0)).toEqual([`Bearer ${PROVIDER_KEY}`]);
  expect(decoy.heads).toEqual([]);
});

it('through UPSTREAM_PROXY_URL the name is the proxy’s to resolve, and the certificate must be for it', async () => {
  const settings = {
    NODE_EXTRA_CA_CERTS: TEST_CA,
    UPSTREAM_PROXY_URL: `http://${decoy.host}`,
    NO_PROXY: '*',
    PROVIDER_URL: `https://provider.test:${provider.port}`,
  };
  const { gateway, url } = await start(settings);
  const response = await get(`${url}/v1/models/a`);
  expect([response.status, await response.text()]).toEqual([200, '/v1/models/a']);
  expect(decoy.heads.splice(0)[0]).toMatch(`CONNECT provider.test:${provider.port} HTTP/1.1\r\n`);
  expect(provider.authorizations.splice(0)).toEqual([`Bearer ${PROVIDER_KEY}`]);

  const stored = await fetch(`${url}/admin/v1/providers`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'other', url: `https://other.test:${provider.port}`, secret: PROVIDER_KEY }),
  });
  expect(stored.status).toBe(201);
  const other = await get(`${url}/p/other/v1/models/a`);
  expect([other.status, other.headers.get('x-gateway-error')]).toEqual([502, 'upstream_unreachable']);
  expect(decoy.heads).toHaveLength(1);
  expect(provider.authorizations).toEqual([]);
  await gateway.stop();
});
