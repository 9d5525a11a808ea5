import { randomBytes } from 'node:crypto';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import type { GatewayProcess } from '../support/process.js';
import { eventually } from '../support/eventually.js';
import { Workplace } from '../support/workplace.js';
import { adminCall, hasten, type OwnedKey, spend } from '../webhooks/alerts.js';
import { Receiver, verified } from '../webhooks/receiver.js';

let database: TestDatabase;
let workplaces: Workplace[];
let receiver: Receiver;
beforeEach(async () => {
  database = await createDatabase();
  workplaces = [await Workplace.make(), await Workplace.make()];
  receiver = await new Receiver().listen();
});
afterEach(async () => {
  for (const workplace of workplaces) await workplace.remove();
  await receiver.close();
  await database.drop();
});

const MASTER_KEY = randomBytes(32).toString('base64');
const start = (workplace = workplaces[0]!): GatewayProcess =>
  workplace.gateway({ DATABASE_URL: database.url, ADMIN_TOKEN, MASTER_KEY });

const createWebhook = (url: string, events: string[]) =>
  adminCall<{ secret: string }>(url, 'POST', '/webhooks', { url: receiver.url, events });
const createKey = (url: string) =>
  adminCall<OwnedKey>(url, 'POST', '/keys', {
    ...{ team: 'default', name: randomBytes(6).toString('hex') },
    budgets: [{ usd: '10', period: 'month', alert_at: [80] }],
  });

it('delivers an event although the process is killed between its cause and its delivery', async () => {
  const killed = start();
  const url = await killed.ready();
  const { secret } = await createWebhook(url, ['budget.threshold']);
  const key = await createKey(url);
  // It cannot deliver any more, and the charge is stored.
  killed.process.signal('SIGSTOP');
  await spend(database, key, '9');
  await killed.process.kill();
  expect(receiver.received).toEqual([]);
  const next = start();
  await next.ready();
  const [request] = await receiver.until(1);
  expect(verified(request!, secret)).toMatchObject({ type: 'budget.threshold', data: { key_id: key.id } });
  await next.stop();
});

it('repeats an attempt during which its process is killed', async () => {
  const killed = start();
  const url = await killed.ready();
  const { secret } = await createWebhook(url, ['budget.threshold']);
  receiver.delayMs = 600_000;
  await spend(database, await createKey(url), '9');
  await receiver.until(1);
  await killed.process.kill();
  receiver.delayMs = 0;
  const next = start();
  await next.ready();
  // Not before it is due: the process could still be at it.
  const [row] = await database.query<{ due: boolean }>(
    'SELECT next_attempt_at > attempted_at AS due FROM webhook_delivery',
  );
  expect(row).toEqual({ due: true });
  await hasten(database);
  const requests = await receiver.until(2);
  expect(requests.map((request) => verified(request, secret).type)).toEqual([
    'budget.threshold',
    'budget.threshold',
  ]);
  expect(requests[1]!.headers['webhook-id']).toBe(requests[0]!.headers['webhook-id']);
  await database.find('SELECT FROM webhook_delivery WHERE delivered_at IS NOT NULL');
  await next.stop();
});

it('delivers each event once although two gateways run', async () => {
  const gateways = workplaces.map((workplace) => start(workplace));
  const urls = await Promise.all(gateways.map((gateway) => gateway.ready()));
  await createWebhook(urls[0]!, ['key.expiring']);
  // The other gateway looks for deliveries while an attempt is under way.
  receiver.delayMs = 3_000;
  for (let i = 0; i < 30; i++)
    await database.query(`SELECT webhook_emit('key.expiring', '{"key": "a"}'::jsonb)`);
  await eventually(async () => {
    const [row] = await database.query<{ waiting: number }>(
      'SELECT count(*)::int AS waiting FROM webhook_delivery WHERE next_attempt_at IS NOT NULL',
    );
    return row!.waiting === 0;
  }, 60_000);
  expect(receiver.received).toHaveLength(30);
  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(30);
  const counts = await Promise.all(
    urls.map(async (url) => {
      const metrics = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
      return Number(
        /^postern_webhook_deliveries_total\{result="delivered"\} (\d+)/m.exec(await metrics.text())![1],
      );
    }),
  );
  expect(counts[0]! + counts[1]!).toBe(30);
  await Promise.all(gateways.map((gateway) => gateway.stop()));
});
