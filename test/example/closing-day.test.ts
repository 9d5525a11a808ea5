import { addToApp } from '../support/app-modules.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { ClosingDayModule } from './closing-day/closing-day.module.js';

addToApp(ClosingDayModule);

const SUNDAY = 0;
const MONDAY = 1;

let provider: RawProvider;
let postern: TestGateway;
let today = SUNDAY;
beforeAll(async () => {
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', [], 'forwarded'));
  });
  postern = await startTestGateway({ PROVIDER_URL: provider.url });
  jest.spyOn(Date.prototype, 'getUTCDay').mockImplementation(() => today);
});
afterAll(async () => {
  jest.restoreAllMocks();
  await postern.stop();
  await provider.stop();
});

async function call(body: string): Promise<[number, string]> {
  const response = await fetch(`${postern.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${postern.key}`, 'content-type': 'application/json' },
    body,
  });
  return [response.status, await response.text()];
}

it('rejects calls in a gateway that has no code for it', async () => {
  const rejected = JSON.stringify({
    error: {
      message: 'gpt-5-pro is not available on Sundays.',
      type: 'permission_error',
      param: null,
      code: 'forbidden',
    },
  });
  expect(await call('{"model":"gpt-5-pro"}')).toEqual([403, rejected]);
  expect(await call('{"model":"gpt-5"}')).toEqual([200, 'forwarded']);
  expect((await call('{"model":"gpt-5","model":"gpt-5-pro"}'))[0]).toBe(400);
  today = MONDAY;
  expect(await call('{"model":"gpt-5-pro"}')).toEqual([200, 'forwarded']);
  expect(await call('no JSON')).toEqual([200, 'forwarded']);
  expect(provider.requests).toHaveLength(3);
});
