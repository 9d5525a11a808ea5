import { WebSocketSessions } from '../../src/proxy/websocket/websocket-sessions.service.js';
import { ResponseSums } from '../../src/bodies/usage/response-sums.js';
import { NO_USAGE } from '../../src/bodies/usage/token-usage.js';
import { startTestGateway } from '../support/gateway.js';
import { eventually } from '../support/eventually.js';
import { WsClient, WsProvider } from './ws-provider.js';

it('charges a dear model at its own price after responses of many cheap ones', async () => {
  const provider = await WsProvider.start();
  const gateway = await startTestGateway({ PROVIDER_URL: provider.url });
  gateway.gateway.app.get(WebSocketSessions).usageEveryMs = 50;
  const price = (model: string, input: string) =>
    gateway.admin('POST', '/prices', { catalog: 'default', model, input, output: input });
  await price('cheap-*', '0.01');
  await price('dear', '1000');
  provider.script = (socket) => {
    socket.on('message', (data: Buffer) => {
      const [model, input] = JSON.parse(data.toString()) as [string, number];
      const usage = { input_tokens: input, output_tokens: 0, total_tokens: input };
      socket.send(JSON.stringify({ type: 'response.completed', response: { model, usage } }));
    });
  };
  const key = await gateway.createKey({
    websockets: true,
    budgets: [{ usd: '1', period: 'month', unpriced: 'allow' }],
  });
  const client = WsClient.connect(gateway.url, '/v1/responses', { authorization: `Bearer ${key}` });
  await client.opened;
  const ask = async (model: string, input: number) => {
    const { length } = client.messages;
    client.socket.send(JSON.stringify([model, input]));
    await eventually(() => client.messages.length > length);
  };
  for (let i = 0; i < 20; i++) await ask(`cheap-${i}`, 1);
  await ask('dear', 10_000);
  await client.closed;
  await eventually(async () => (await gateway.rowCount()) === 1);
  const { data } = await gateway.admin<{ data: { charge_usd: string }[] }>('GET', '/requests?limit=1');
  expect(Number(data[0]?.charge_usd)).toBeGreaterThan(10);
  await gateway.stop();
  await provider.stop();
});

it('adds up what exceeds the sums of a connection with others of the same model', () => {
  const sums = new ResponseSums();
  const add = (model: string, tier: string) =>
    sums.add({ ...NO_USAGE, model, promptTokens: 1, extra: { service_tier: tier } });
  for (let i = 0; i < 48; i++) add('dear', `tier_${i}`);
  for (let i = 0; i < 48; i++) add('cheap', `tier_${i}`);
  add('dear', 'another');
  const { responses } = sums.total.extra!;
  const dear = responses!.filter(({ model }) => model === 'dear');
  expect(dear.reduce((count, sum) => count + sum.responses, 0)).toBe(49);
});
