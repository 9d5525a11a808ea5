import { startTestGateway } from '../support/gateway.js';
import { RawClient, request } from '../support/raw-client.js';
import { unusedPort } from '../support/unused-port.js';

it.each([
  ['127.0.0.1', '127.0.0.1'],
  ['127.0.0.1', 'localhost'],
  ['0.0.0.0', '127.0.0.1'],
  // Linux takes every address of 127.0.0.0/8 for its own.
  ...(process.platform === 'linux'
    ? [
        ['0.0.0.0', '127.0.0.2'],
        ['0.0.0.0', '[::ffff:127.0.0.3]'],
      ]
    : []),
])('a gateway on %s whose provider is itself, by %s, answers 502 at once', async (listens, called) => {
  const port = await unusedPort();
  const gateway = await startTestGateway({
    HOST: listens,
    PORT: String(port),
    PROVIDER_URL: `http://${called}:${port}`,
  });
  const client = await RawClient.connect(port);
  client.send(request('POST /v1/chat/completions', [`Authorization: Bearer ${gateway.key}`], '{}'));
  const reply = await client.answer();
  client.destroy();
  // Its own rejection of the provider's secret would have been a 401, and passed on.
  expect([reply.status, reply.header('x-gateway-error')]).toEqual([502, 'upstream_unreachable']);
  expect(await gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({
    outcome: 'upstream_error',
  });
  expect(await gateway.rowCount()).toBe(1);
  await gateway.stop();
});

it('with ADMIN_PORT its second listener is itself, too', async () => {
  const gateway = await startTestGateway({ ADMIN_PORT: '0' });
  await gateway.admin('POST', '/providers', { name: 'home', url: gateway.gateway.adminUrl, secret: null });
  expect(await gateway.admin('POST', '/providers/home/test')).toMatchObject({ code: 'forbidden_address' });
  const response = await fetch(`${gateway.url}/p/home/v1/models`, {
    headers: { authorization: `Bearer ${gateway.key}` },
  });
  expect(response.headers.get('x-gateway-error')).toBe('upstream_unreachable');
  await gateway.stop();
});
