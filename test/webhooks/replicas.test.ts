import { randomBytes } from 'node:crypto';
import { Scrape } from '../observability/scrape.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { Receiver } from './receiver.js';

let gateways: TestGateway[];
let receiver: Receiver;
beforeAll(async () => {
  const settings = { MASTER_KEY: randomBytes(32).toString('base64') };
  const first = await startTestGateway(settings);
  gateways = [first, await startTestGateway(settings, first.database)];
  receiver = await new Receiver().listen();
});
afterAll(async () => {
  for (const gateway of gateways.reverse()) await gateway.stop();
  await receiver.close();
});

it('delivers each event once although two gateways run', async () => {
  const [first] = gateways as [TestGateway];
  const { database } = first;
  await first.admin('POST', '/webhooks', { url: receiver.url, events: ['key.expiring'] });
  // The other gateway looks for deliveries while an attempt is under way.
  receiver.delayMs = 3_000;
  for (let i = 0; i < 30; i++)
    await database.query(`SELECT webhook_emit('key.expiring', '{"key": "a"}'::jsonb)`);
  await eventually(async () => {
    const [row] = await database.query<{ waiting: number }>(
      'SELECT count(*)::int AS waiting FROM webhook_delivery WHERE next_attempt_at IS NOT NULL',
    );
    return row!.waiting === 0;
  });
  const attempts = async (result: string) => {
    const scrapes = await Promise.all(gateways.map(({ url }) => Scrape.of(url)));
    return scrapes.reduce(
      (sum, scrape) => sum + scrape.sum('postern_webhook_deliveries_total', { result }),
      0,
    );
  };
  await eventually(async () => (await attempts('delivered')) === 30);
  // One that took too long on a busy machine was repeated.
  expect(receiver.received.length).toBeLessThanOrEqual(30 + (await attempts('retrying')));
  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(30);
});
