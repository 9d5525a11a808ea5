import { RawClient, request } from '../support/raw-client.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';

let gateway: TestGateway;
let provider: RawProvider;

const LARGE = Buffer.alloc(30_000_000, 'a');

beforeAll(async () => {
  provider = await RawProvider.start(async (req) => {
    await req.body;
    const large = req.head.startsWith('POST /v1/chat/completions');
    req.socket.write(answer('200 OK', [], large ? LARGE : 'small'));
  });
  gateway = await startTestGateway({ PROVIDER_URL: provider.url });
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});

// While the first answer waits for its reader, the second one is written behind it; Node then says 'drain' to the first.
it('a slow reader gets both answers whole when the second comes while the first is held back', async () => {
  const key = [`Authorization: Bearer ${gateway.key}`];
  const client = await RawClient.connect(gateway.port);
  client.socket.pause();
  client.send(request('POST /v1/chat/completions', key, '{}'));
  client.send(request('POST /v1/embeddings', key, '{}'));
  // Both are answered by the provider before the client reads a byte.
  while (provider.requests.length < 2) await new Promise((resolve) => setTimeout(resolve, 10));
  await new Promise((resolve) => setTimeout(resolve, 300));
  client.socket.resume();
  const first = await client.answer();
  const second = await client.answer();
  client.destroy();
  expect(first.body.equals(LARGE)).toBe(true);
  expect(second.body.toString()).toBe('small');
  for (const reply of [first, second]) {
    expect(await gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({ outcome: 'completed' });
  }
});
