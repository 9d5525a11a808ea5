import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { Journal } from '../../src/request-log/journal/journal.js';
import { AlertScan } from '../../src/webhooks/alert-scan.service.js';
import { JournalAlerts } from '../../src/webhooks/journal-alerts.service.js';
import { Scrape } from '../observability/scrape.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { eventually } from '../support/eventually.js';
import { hasten, type OwnedKey, postpone, spend, storedEvents } from './alerts.js';
import { Receiver, verified } from './receiver.js';

let gateway: TestGateway;
let receiver: Receiver;
beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway.stop());
beforeEach(async () => {
  await gateway.database.query('DELETE FROM webhook');
  await gateway.database.query('DELETE FROM webhook_event');
  await gateway.database.query('DELETE FROM unpriced_model');
  receiver = await new Receiver().listen();
});
afterEach(() => receiver.close());

interface Created {
  id: string;
  secret: string | null;
}

const create = (events: string[], more: object = {}) =>
  gateway.admin<Created>('POST', '/webhooks', { url: receiver.url, events, ...more });
const get = (id: string) => gateway.admin<Record<string, unknown>>('GET', `/webhooks/${id}`);
const createKey = (members: object): Promise<OwnedKey> =>
  gateway.admin('POST', '/keys', { team: 'default', name: randomBytes(6).toString('hex'), ...members });
const emit = (type: string, data: object = { key: 'a' }) =>
  gateway.database.query('SELECT webhook_emit($1, $2)', [type, JSON.stringify(data)]);

it('delivers the alert of a budget, signed as Standard Webhooks say, and shows the delivery', async () => {
  const { id, secret } = await create(['budget.threshold']);
  const key = await createKey({ budgets: [{ usd: '10', period: 'month', alert_at: [80] }] });
  await spend(gateway.database, key, '8.5');
  const [request] = await receiver.until(1);
  const payload = verified(request!, secret!);
  expect(request!.path).toBe('/hooks/postern?token=canary-receiver-token');
  expect(payload).toMatchObject({
    type: 'budget.threshold',
    data: {
      team: 'default',
      key: key.name,
      key_id: key.id,
      subject: null,
      resource: 'usd',
      period: 'month',
      mode: 'block',
      threshold: 80,
      amount: '10.00',
      used: '8.50',
      left: '1.50',
    },
  });
  const next = new Date();
  next.setUTCMonth(next.getUTCMonth() + 1, 1);
  next.setUTCHours(0, 0, 0, 0);
  expect(payload.data.resets_at).toBe(next.toISOString());
  expect(() => verified({ ...request!, body: request!.body.replace('8.50', '9.50') }, secret!)).toThrow();
  const shown = await eventually(async () => {
    const view = await get(id);
    return (view.last_delivery as { state: string } | null)?.state === 'delivered' && view;
  });
  expect(shown).toMatchObject({
    waiting: 0,
    last_delivery: {
      event_id: request!.headers['webhook-id'],
      type: 'budget.threshold',
      attempts: 1,
      status: 204,
      error: null,
      next_attempt_at: null,
    },
  });
});

it('repeats what a receiver that is down, fails or redirects did not take, with the same ID and body', async () => {
  const { id, secret } = await create(['key.expiring']);
  await receiver.close();
  await emit('key.expiring');
  const failed = async (attempts: number) => {
    const view = await eventually(async () => {
      const last = (await get(id)).last_delivery as { attempts: number; error: string | null } | null;
      return last?.attempts === attempts && last.error !== null && last;
    });
    await postpone(gateway.database);
    return view;
  };
  expect(await failed(1)).toMatchObject({ state: 'retrying', status: null, error: 'refused' });
  await receiver.listen();
  receiver.status = 500;
  await hasten(gateway.database);
  expect(await failed(2)).toMatchObject({ state: 'retrying', status: 500, error: 'unexpected_status' });
  receiver.status = 307;
  receiver.headers = { location: receiver.url.replace('hooks', 'elsewhere') };
  await hasten(gateway.database);
  expect(await failed(3)).toMatchObject({ status: 307, error: 'redirect' });
  receiver.status = 200;
  await hasten(gateway.database);
  const requests = await receiver.until(3);
  expect(requests).toHaveLength(3);
  expect(requests.every(({ path }) => path.startsWith('/hooks/'))).toBe(true);
  expect(new Set(requests.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  expect(new Set(requests.map(({ body }) => body)).size).toBe(1);
  for (const request of requests) verified(request, secret!);
  const attempts = async (result: string) =>
    (await Scrape.of(gateway.url)).sum('postern_webhook_deliveries_total', { result });
  await eventually(async () => (await attempts('delivered')) >= 1 && (await attempts('retrying')) >= 3);
});

it('makes 8 attempts over 24 hours, and no more', async () => {
  const { id } = await create(['key.expiring']);
  receiver.status = 503;
  await emit('key.expiring');
  const pauses: number[] = [];
  for (let attempt = 1; attempt <= 8; attempt++) {
    await receiver.until(attempt);
    const row = await eventually(async () => {
      const [one] = await gateway.database.query<{ pause: number | null }>(
        `SELECT extract(epoch FROM next_attempt_at - attempted_at)::float8 AS pause FROM webhook_delivery
         WHERE attempts = $1 AND error IS NOT NULL`,
        [attempt],
      );
      return one;
    });
    if (row.pause !== null) pauses.push(Math.round(row.pause));
    await hasten(gateway.database);
  }
  expect(pauses).toHaveLength(7);
  expect(pauses.reduce((sum, pause) => sum + pause)).toBe(86_400);
  expect(pauses).toEqual([...pauses].sort((a, b) => a - b));
  expect(await get(id)).toMatchObject({ waiting: 0, last_delivery: { state: 'failed', attempts: 8 } });
});

it('sends a message to Slack, without a signature, and shows no part of its URL that is a secret', async () => {
  const { id, secret } = await create(['key.expiring', 'price.missing'], { format: 'slack' });
  expect(secret).toBeNull();
  expect((await get(id)).url).toBe(`${new URL(receiver.url).origin}/…`);
  await emit('price.missing', { provider: 'openai', model: '<!channel>&', first_day: '2026-01-31' });
  const [request] = await receiver.until(1);
  expect(JSON.parse(request!.body)).toEqual({
    text: 'Model &lt;!channel&gt;&amp; of provider openai has no price: its calls have no cost.',
  });
  expect(request!.headers).not.toHaveProperty('webhook-signature');
});

it.each([
  ['https://evil.example/path', 'https:\u200b//evil.\u200bexample/path'],
  ['www.evil.example', 'www.\u200bevil.\u200bexample'],
  ['mailto:me@evil.example', 'mailto:\u200bme@\u200bevil.\u200bexample'],
  ['//xn--e1awd7f.рф', '//xn--e1awd7f.\u200bрф'],
  ['gpt-4.1-mini', 'gpt-4.1-mini'],
])('sends the name %s to Slack without an address that would become a link', async (model, shown) => {
  await create(['price.missing'], { format: 'slack' });
  await emit('price.missing', { provider: 'openai', model, first_day: '2026-01-31' });
  const [request] = await receiver.until(1);
  expect(JSON.parse(request!.body)).toEqual({
    text: `Model ${shown} of provider openai has no price: its calls have no cost.`,
  });
});

it('announces a key 7 days and 1 day before it expires, once each, and no short-lived one', async () => {
  const { secret } = await create(['key.expiring']);
  const scan = gateway.gateway.app.get(AlertScan);
  const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();
  const [soon, later, short, revoked] = await Promise.all([
    createKey({ expires_at: inDays(0.5) }),
    createKey({ expires_at: inDays(3.5) }),
    createKey({ expires_at: inDays(0.9) }),
    createKey({ expires_at: inDays(6.5) }),
  ]);
  await createKey({ expires_at: inDays(7.5) });
  await gateway.admin('POST', `/keys/${revoked.id}/revoke`);
  await gateway.database.query(
    `UPDATE gateway_key SET created_at = now() - interval '30 days' WHERE id <> $1`,
    [short.id],
  );
  for (let i = 0; i < 3; i++) await scan.run();
  const requests = await receiver.until(2);
  const days = () =>
    requests.map((request) => verified(request, secret!).data).map(({ key_id, days }) => [key_id, days]);
  expect(new Map(days() as [string, number][])).toEqual(
    new Map([
      [soon.id, 1],
      [later.id, 4],
    ]),
  );
  const { data } = verified(requests[0]!, secret!);
  const key = data.key_id === soon.id ? soon : later;
  expect(data).toMatchObject({
    team: 'default',
    key: key.name,
    prefix: key.prefix,
    expires_at: key.expires_at,
  });

  await gateway.database.query('UPDATE gateway_key SET expires_at = $2 WHERE id = $1', [
    later.id,
    inDays(0.9),
  ]);
  for (let i = 0; i < 3; i++) await scan.run();
  await receiver.until(3);
  expect(days()[2]).toEqual([later.id, 1]);
  expect(await storedEvents(gateway.database)).toHaveLength(3);
});

it('announces each model without a price once, and a bounded number a day', async () => {
  const { secret } = await create(['price.missing']);
  const scan = gateway.gateway.app.get(AlertScan);
  const note = (model: string, days: number) =>
    gateway.database.query(
      `INSERT INTO unpriced_model (provider, model, day) VALUES ('default', $1, (now() AT TIME ZONE 'UTC')::date - $2::int)`,
      [model, days],
    );
  const long = 'm'.repeat(1_024);
  await note(long, 1);
  await note(long, 0);
  for (let i = 0; i < 3; i++) await scan.run();
  const [request] = await receiver.until(1);
  expect(verified(request!, secret!)).toMatchObject({
    type: 'price.missing',
    data: { provider: 'default', model: long },
  });
  await Promise.all(Array.from({ length: 60 }, (_, i) => note(`made-up-${i}`, 0)));
  for (let i = 0; i < 3; i++) await scan.run();
  expect(await storedEvents(gateway.database)).toHaveLength(50);
});

it('announces a degraded journal when that begins, at most once an hour', async () => {
  const { secret } = await create(['journal.degraded']);
  const alerts = gateway.gateway.app.get(JournalAlerts);
  const journal = gateway.gateway.app.get(Journal);
  const health = (journal as unknown as { health: { report: unknown; recovered: unknown } }).health as {
    report(kind: string, error: unknown): void;
    recovered(kind: string): void;
  };
  for (let i = 0; i < 2; i++) {
    health.report('remove', Object.assign(new Error('read-only file system'), { code: 'EROFS' }));
    await alerts.check();
    await alerts.check();
    health.recovered('remove');
    await alerts.check();
  }
  const [request] = await receiver.until(1);
  expect(verified(request!, secret!)).toMatchObject({
    type: 'journal.degraded',
    data: {
      host: hostname(),
      accepting: true,
      reason: expect.stringContaining('read-only file system') as string,
    },
  });
  expect(await storedEvents(gateway.database)).toHaveLength(1);
  await gateway.database.query(`UPDATE webhook_event SET created_at = now() - interval '61 minutes'`);
  health.report('remove', new Error('again'));
  await alerts.check();
  health.recovered('remove');
  await alerts.check();
  expect(await storedEvents(gateway.database)).toHaveLength(2);
});

it('deletes old events with their deliveries', async () => {
  await create(['price.missing']);
  await emit('price.missing');
  await receiver.until(1);
  await gateway.database.query(`UPDATE webhook_event SET created_at = now() - interval '31 days'`);
  await eventually(async () => {
    await gateway.gateway.app.get(AlertScan).run();
    return (await gateway.database.query('SELECT FROM webhook_delivery')).length === 0;
  });
});

it('does not let one receiver that does not respond delay another', async () => {
  const slow = await new Receiver().listen();
  slow.delayMs = 60_000;
  for (let i = 0; i < 3; i++)
    await gateway.admin('POST', '/webhooks', { url: slow.url, events: ['key.expiring'] });
  await create(['key.expiring']);
  await emit('key.expiring');
  await receiver.until(1);
  await slow.close();
});
