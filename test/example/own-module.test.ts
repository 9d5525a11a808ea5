import { eventually, FakeProvider, startGateway, type TestGateway } from '../../src/testing/index.js';
import { TokenAlarmModule } from './token-alarm/token-alarm.module.js';

let provider: FakeProvider;
let postern: TestGateway;
beforeAll(async () => {
  provider = await FakeProvider.start();
  postern = await startGateway({
    modules: [TokenAlarmModule],
    settings: { providerUrl: provider.url },
    variables: { TOKEN_ALARM_PER_DAY: '5' },
  });
}, 60_000);
afterAll(async () => {
  await postern.stop();
  await provider.stop();
});

it('warns about a team that uses too many tokens', async () => {
  provider.respond({ json: { usage: { prompt_tokens: 8, completion_tokens: 2 } } });
  const response = await fetch(`${postern.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${await postern.createKey()}` },
    body: '{"model":"m"}',
  });
  expect(provider.requests[0]?.json()).toEqual({ model: 'm' });
  const row = await postern.row(response.headers.get('x-gateway-request-id')!);
  expect(row).toMatchObject({ status: 200, prompt_tokens: 8 });
  const headers = { authorization: `Bearer ${postern.adminToken}` };
  const metrics = async () => (await fetch(`${postern.adminUrl}/metrics`, { headers })).text();
  await eventually(async () => (await metrics()).includes('token_alarms_total 1'));
});
