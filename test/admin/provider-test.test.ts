import type { ProbeResult } from '../../src/providers/providers.schema.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { TlsProvider } from '../support/tls-provider.js';
import { unusedPort } from '../support/unused-port.js';

let postern: TestGateway;
let provider: RawProvider;
let reply: Buffer | null;

beforeAll(async () => {
  postern = await startTestGateway();
  provider = await RawProvider.start((req) => {
    if (reply !== null) req.socket.write(reply);
  });
});
afterAll(async () => {
  await postern.stop();
  await provider.stop();
});

let names = 0;
async function test(settings: object = {}): Promise<ProbeResult> {
  const name = `probed-${++names}`;
  await postern.admin('POST', '/providers', { name, url: provider.url, secret: 'sk-probed', ...settings });
  return postern.admin<ProbeResult & Record<string, unknown>>('POST', `/providers/${name}/test`);
}

it('makes one harmless call as calls are made, and says that all is well', async () => {
  reply = answer('200 OK', [], '{"data":[]}');
  const result = await test({ url: `${provider.url}/base`, auth: 'x-api-key', enabled: false });
  expect(result).toEqual({
    ok: true,
    code: 'ok',
    message: expect.any(String) as string,
    status: 200,
    duration_ms: expect.any(Number) as number,
  });
  const [request, ...more] = provider.requests;
  expect(more).toEqual([]);
  expect(request!.head).toMatch(/^GET \/base\/v1\/models HTTP\/1\.1\r\n/);
  expect(request!.headers).toContainEqual(['x-api-key', 'sk-probed']);
  // Which Anthropic asks of every call.
  expect(request!.headers).toContainEqual(['anthropic-version', '2023-06-01']);
  // Rows are written in their order: that of a later call shows that the test has none.
  await postern.admin('POST', '/providers', { name: 'called', url: provider.url, secret: null });
  const headers = { authorization: `Bearer ${postern.key}` };
  const called = await fetch(`${postern.url}/p/called/v1/models`, { headers });
  expect([called.status, await called.text()]).toEqual([200, '{"data":[]}']);
  await postern.row(called.headers.get('x-gateway-request-id')!);
  expect(await postern.rowCount()).toBe(1);
});

it.each([
  ['401 Unauthorized', 'unauthorized', /rejected the secret/],
  ['403 Forbidden', 'unauthorized', /rejected the secret/],
  ['404 Not Found', 'not_found', /path of the URL/],
  ['429 Too Many Requests', 'rate_limited', /limits/],
  ['400 Bad Request', 'unexpected_status', /secret/],
  ['301 Moved Permanently', 'redirect', /final URL/],
  ['500 Internal Server Error', 'provider_error', /server error/],
])('says what %s means', async (status, code, message) => {
  reply = answer(status, ['Location: http://127.0.0.1:1/'], 'Incorrect API key provided: sk-probed');
  const result = await test();
  expect(result).toMatchObject({ ok: false, code, status: Number(status.slice(0, 3)) });
  expect(result.message).toMatch(message);
  expect(JSON.stringify(result)).not.toContain('sk-probed');
});

it('tells a missing secret from a wrong one', async () => {
  reply = answer('401 Unauthorized', [], '');
  expect((await test({ secret: null })).message).toContain('none is stored');
});

it('says that nothing listens, or that a name does not resolve', async () => {
  expect(await test({ url: `http://127.0.0.1:${await unusedPort()}` })).toMatchObject({
    code: 'refused',
    status: null,
  });
  expect(await test({ url: 'https://no-such-host.invalid' })).toMatchObject({ code: 'name_not_resolved' });
});

it('says that a certificate is not trusted, and sends no secret there', async () => {
  const tls = await TlsProvider.start();
  const result = await test({ url: `https://127.0.0.1:${tls.port}` });
  expect(result).toMatchObject({ ok: false, code: 'tls', status: null });
  expect(result.message).toContain('NODE_EXTRA_CA_CERTS');
  expect(tls.authorizations).toEqual([]);
  await tls.stop();
});

it('says that the other side does not speak TLS, or not HTTP', async () => {
  const plain = postern.url.replace('http:', 'https:');
  expect(await test({ url: plain })).toMatchObject({ ok: false, code: 'tls', status: null });
  reply = Buffer.from('SSH-2.0-OpenSSH_9.9\r\n\r\n');
  expect(await test()).toMatchObject({ ok: false, code: 'not_http', status: null });
});

it('does not wait for ever', async () => {
  reply = null;
  const impatient = await startTestGateway({ UPSTREAM_HEADERS_TIMEOUT_MS: '300' }, postern.database);
  await impatient.admin('POST', '/providers', { name: 'silent', url: provider.url, secret: null });
  expect(await impatient.admin('POST', '/providers/silent/test')).toMatchObject({
    ok: false,
    code: 'timeout',
    status: null,
  });
  await impatient.stop();
});

it('connects nowhere that calls may not: not to this gateway, not in clear to public addresses', async () => {
  const home = await test({ url: postern.url });
  expect(home).toMatchObject({ ok: false, code: 'forbidden_address' });
  expect(home.message).toContain('leads back to this gateway');
  await postern.database.query("UPDATE provider SET url = 'http://169.254.169.254' WHERE name = 'probed-1'");
  expect(await postern.admin('POST', '/providers/probed-1/test')).toMatchObject({
    code: 'forbidden_address',
  });
});

it('takes nothing but the name', async () => {
  await expect(postern.admin('POST', '/providers/probed-1/test', { url: 'http://x' })).rejects.toThrow(/400/);
});

it('says so when somebody wrote a url to the table that is none', async () => {
  await postern.database.query("UPDATE provider SET url = 'nonsense' WHERE name = 'probed-2'");
  await expect(postern.admin('POST', '/providers/probed-2/test')).rejects.toThrow(
    /409 .*url: the stored value is not a valid URL/,
  );
});
