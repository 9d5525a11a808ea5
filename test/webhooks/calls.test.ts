import { type LimitedGateway, startLimited } from '../limits/limited-gateway.js';
import { Receiver, verified } from './receiver.js';

let limited: LimitedGateway;
let receiver: Receiver;
beforeAll(async () => {
  limited = await startLimited();
  receiver = await new Receiver().listen();
});
afterAll(async () => {
  await limited.stop();
  await receiver.close();
});

it('announces a threshold and the end of a budget that calls spend, and the key sees both itself', async () => {
  const { postern } = limited;
  const { secret } = await postern.admin<{ secret: string }>('POST', '/webhooks', {
    url: receiver.url,
    events: ['budget.threshold', 'budget.exhausted'],
  });
  // Each call costs 0.0101 USD, and reserves a little more.
  Object.assign(limited.use, { input: 100, output: 1_000 });
  const budgets = [{ usd: '0.05', period: 'month', alert_at: [20, 60] }];
  const { id, key } = await limited.issue({ budgets });
  const body = { model: 'm', max_tokens: 1_000, messages: [] };
  const own = async () => {
    const response = await fetch(`${postern.url}/self/v1/key`, {
      headers: { authorization: `Bearer ${key}` },
    });
    return ((await response.json()) as { limits: { state: string; used: string }[] }).limits;
  };
  // After each call, so that no batch has several: the highest threshold of a batch would be announced alone.
  let status;
  let calls = 0;
  do {
    ({ status } = await limited.send(key, body));
    if (status === 200) calls++;
    await postern.database.find('SELECT 1 FROM request_log WHERE key_id = $1 HAVING count(*) = $2', [
      id,
      calls,
    ]);
  } while (status === 200);
  expect([status, calls]).toEqual([402, 4]);
  const events = (await receiver.until(3)).map((request) => verified(request, secret));
  const shown = events.map(({ type, data }) => `${type} ${String(data.threshold)} ${String(data.used)}`);
  expect(shown.sort()).toEqual([
    'budget.exhausted 60 0.0404',
    'budget.threshold 20 0.0101',
    'budget.threshold 60 0.0303',
  ]);
  expect(await own()).toMatchObject([{ state: 'blocking', used: '0.0404' }]);
  await limited.send(key, body);
  expect(receiver.received).toHaveLength(3);
});
