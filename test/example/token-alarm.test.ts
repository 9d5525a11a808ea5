import { Logger } from '@nestjs/common';
import { addToApp } from '../support/app-modules.js';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { TokenAlarmModule } from './token-alarm/token-alarm.module.js';

addToApp(TokenAlarmModule);

let provider: RawProvider;
let postern: TestGateway;
let lines: string[];
beforeAll(async () => {
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    const usage = '{"usage":{"prompt_tokens":8,"completion_tokens":2}}';
    socket.write(answer('200 OK', ['Content-Type: application/json'], usage));
  });
  postern = await startTestGateway({ PROVIDER_URL: provider.url, TOKEN_ALARM_PER_DAY: '25' });
  lines = [];
  const keep = (message: unknown) => {
    if (String(message).startsWith('Team ')) lines.push(String(message));
  };
  Logger.overrideLogger({ log: keep, warn: keep, error: keep, fatal: keep });
});
afterAll(async () => {
  await postern.stop();
  await provider.stop();
});

async function call(): Promise<string> {
  const response = await fetch(`${postern.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${postern.key}` },
    body: '{"model":"m"}',
  });
  await response.arrayBuffer();
  return response.headers.get('x-gateway-request-id')!;
}

it('observes every call, in a gateway that has no code for it', async () => {
  for (let i = 0; i < 2; i++) await call();
  await postern.row(await call());
  await eventually(() => lines.length > 0);
  await postern.row(await call());
  expect(lines).toEqual(['Team default has used 30 tokens today; the limit is 25.']);
});

it('has a metric of its own', async () => {
  const response = await fetch(`${postern.url}/metrics`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  expect((await response.text()).split('\n')).toContain('token_alarms_total 1');
});
