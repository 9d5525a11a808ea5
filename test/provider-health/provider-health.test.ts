import { ProviderHealthWatch } from '../../src/provider-health/provider-health.service.js';
import { FakeProvider } from '../../src/testing/fake-provider.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { insertRow } from '../request-log/rows.js';
import { storedEvents } from '../webhooks/alerts.js';

const QUOTA = { error: { type: 'insufficient_quota', code: 'insufficient_quota', message: 'x' } };

let provider: FakeProvider;
let gateways: TestGateway[];
let first: TestGateway;
beforeAll(async () => {
  provider = await FakeProvider.start();
  first = await startTestGateway({ PROVIDER_URL: provider.url });
  gateways = [first, await startTestGateway({ PROVIDER_URL: provider.url }, first.database)];
  const events = ['provider.failing', 'provider.recovered'];
  await first.admin('POST', '/webhooks', { url: 'http://127.0.0.1:9/', events });
});
afterAll(async () => {
  for (const gateway of gateways.reverse()) await gateway.stop();
  await provider.stop();
});
beforeEach(() =>
  first.database.query(
    'DELETE FROM webhook_delivery; DELETE FROM webhook_event; DELETE FROM failing_provider; DELETE FROM request_log',
  ),
);

/** Both replicas look at the same time. */
async function look(): Promise<void> {
  await Promise.all(
    gateways.flatMap(({ gateway }) => {
      const watch = gateway.app.get(ProviderHealthWatch);
      return [watch.run(), watch.run()];
    }),
  );
}

async function rows(count: number, columns: Record<string, unknown>): Promise<void> {
  for (let i = 0; i < count; i++) await insertRow(first.database, new Date(), columns);
}

const age = () =>
  first.database.query("UPDATE request_log SET recorded_at = recorded_at - interval '4 minutes'");
const failing = () =>
  first.database.query<{ provider: string; calls: number; failures: number; reason: string | null }>(
    'SELECT provider, calls, failures, reason FROM failing_provider',
  );
const types = async () => (await storedEvents(first.database)).map(({ type }) => type);

it('announces a provider that fails, and that it has recovered, once over all replicas', async () => {
  const call = async (gateway: TestGateway) => {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${first.key}` },
      body: '{"model":"m"}',
    });
    await response.text();
    await first.row(response.headers.get('x-gateway-request-id')!);
  };
  provider.respond({ status: 429, json: QUOTA });
  for (const gateway of [...gateways, ...gateways]) await call(gateway);
  await look();
  expect(await failing()).toEqual([]);
  await call(first);
  await look();
  await look();
  expect(await storedEvents(first.database)).toEqual([
    {
      type: 'provider.failing',
      data: {
        provider: 'default',
        since: expect.stringMatching(/^\d{4}-.*Z$/) as string,
        calls: 5,
        failures: 5,
        reason: 'insufficient_quota',
        window_seconds: 180,
      },
    },
  ]);
  await age();
  provider.respond({ json: {} });
  await call(first);
  await look();
  await look();
  expect(await types()).toEqual(['provider.failing', 'provider.recovered']);
  expect(await failing()).toEqual([]);
});

it('keeps its state between half and a fifth of the calls', async () => {
  // The gateways look by themselves too.
  await rows(6, { status: 200 });
  await rows(5, { status: 503 });
  await look();
  expect(await failing()).toEqual([]);
  await rows(1, { status: null, outcome: 'upstream_error', error_code: 'upstream_unreachable' });
  await look();
  expect(await failing()).toMatchObject([{ calls: 12, failures: 6, reason: '503' }]);
  await rows(12, { status: 200 });
  await look();
  expect(await failing()).toMatchObject([{ calls: 24, failures: 6 }]);
  await rows(6, { status: 200 });
  await look();
  expect(await failing()).toEqual([]);
  expect(await types()).toEqual(['provider.failing', 'provider.recovered']);
});

it('counts no failure that a client causes, and no call that says nothing about the provider', async () => {
  for (const status of [400, 403, 404, 413, 422]) await rows(2, { status });
  await rows(9, { status: null, outcome: 'client_aborted' });
  await rows(9, { status: 500, outcome: 'replayed' });
  await rows(9, { status: 503, repaired_at: new Date() });
  await look();
  expect(await failing()).toEqual([]);
});

it('counts attempts that a route retried', async () => {
  await rows(5, {
    status: null,
    outcome: 'retried',
    error_code: 'upstream_unreachable',
    error_cause: 'ECONNREFUSED',
  });
  await look();
  expect(await failing()).toMatchObject([{ failures: 5, reason: 'ECONNREFUSED' }]);
});

it('does not hold it against a provider that callers send rejected credentials of their own', async () => {
  await first.admin('POST', '/providers', {
    name: 'theirs',
    url: 'http://127.0.0.1:9',
    auth: 'client',
    secret: null,
  });
  await rows(9, { provider: 'theirs', status: 401 });
  await rows(9, { provider: 'theirs', status: 429 });
  await look();
  expect(await failing()).toEqual([]);
  await rows(18, { provider: 'theirs', status: 502 });
  await look();
  expect(await failing()).toMatchObject([{ provider: 'theirs', calls: 36, failures: 18 }]);
});

it('stays without calls, and is forgotten after a day', async () => {
  await rows(5, { status: 500 });
  await look();
  await age();
  await look();
  expect(await failing()).toHaveLength(1);
  await first.database.query("UPDATE failing_provider SET last_call_at = now() - interval '25 hours'");
  await look();
  expect(await failing()).toEqual([]);
  expect(await types()).toEqual(['provider.failing']);
});

it('looks by itself, in one replica', async () => {
  await rows(5, { status: 500 });
  for (const { gateway } of gateways) await gateway.app.get(ProviderHealthWatch).onInterval();
  await eventually(async () => (await failing()).length === 1);
});
