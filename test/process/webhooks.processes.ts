import { randomBytes } from 'node:crypto';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import type { GatewayProcess } from '../support/process.js';
import { Workplace } from '../support/workplace.js';
import { adminCall, hasten, type OwnedKey, spend } from '../webhooks/alerts.js';
import { Receiver, verified } from '../webhooks/receiver.js';

let database: TestDatabase;
let workplace: Workplace;
let receiver: Receiver;
beforeAll(async () => {
  database = await createDatabase();
  workplace = await Workplace.make();
  receiver = await new Receiver().listen();
});
afterAll(async () => {
  await workplace.remove();
  await receiver.close();
  await database.drop();
});

const MASTER_KEY = randomBytes(32).toString('base64');
const start = (): GatewayProcess =>
  workplace.gateway({ DATABASE_URL: database.url, ADMIN_TOKEN, MASTER_KEY });

const createWebhook = (url: string, events: string[]) =>
  adminCall<{ secret: string }>(url, 'POST', '/webhooks', { url: receiver.url, events });
const createKey = (url: string) =>
  adminCall<OwnedKey>(url, 'POST', '/keys', {
    team: 'default',
    name: randomBytes(6).toString('hex'),
    budgets: [{ usd: '10', period: 'month', alert_at: [80] }],
  });

let started: GatewayProcess;
let secret: string;

it('delivers an event although the process is killed between its cause and its delivery', async () => {
  const killed = start();
  const url = await killed.ready();
  // Its team is there.
  await killed.firstKey();
  ({ secret } = await createWebhook(url, ['budget.threshold']));
  const key = await createKey(url);
  // It cannot deliver any more, and the charge is stored.
  killed.process.signal('SIGSTOP');
  await spend(database, key, '9');
  await killed.process.kill();
  expect(receiver.received).toEqual([]);
  started = start();
  await started.ready();
  const [request] = await receiver.until(1);
  expect(verified(request!, secret)).toMatchObject({ type: 'budget.threshold', data: { key_id: key.id } });
  await database.find('SELECT FROM webhook_delivery WHERE delivered_at IS NOT NULL');
});

it('repeats an attempt during which its process is killed', async () => {
  receiver.delayMs = 600_000;
  await spend(database, await createKey(await started.ready()), '9');
  await receiver.until(2);
  await started.process.kill();
  // Not before it is due: the process could still be at it.
  const [row] = await database.query<{ due: boolean }>(
    'SELECT next_attempt_at > attempted_at AS due FROM webhook_delivery WHERE delivered_at IS NULL',
  );
  expect(row).toEqual({ due: true });
  receiver.delayMs = 0;
  const next = start();
  await next.ready();
  await hasten(database);
  const requests = (await receiver.until(3)).slice(1);
  expect(requests.map((request) => verified(request, secret).type)).toEqual([
    'budget.threshold',
    'budget.threshold',
  ]);
  expect(requests[1]!.headers['webhook-id']).toBe(requests[0]!.headers['webhook-id']);
  await database.find('SELECT 1 FROM webhook_delivery HAVING count(*) = count(delivered_at)');
  await next.stop();
});
