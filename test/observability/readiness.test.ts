import { LookupPool } from '../../src/database/lookup-pool.js';
import { Journal } from '../../src/request-log/journal/journal.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { PostgresRelay } from '../support/postgres-relay.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { setPatience } from '../support/patience.js';

setPatience(
  1,
  'Postgres before degraded',
  'exchanges before degraded',
  'Postgres for readiness',
  'a look-up',
  'a step of a stop',
);

let database: TestDatabase;
let relay: PostgresRelay;
let gateway: TestGateway;
beforeEach(async () => {
  database = await createDatabase();
  relay = await PostgresRelay.to(database.url);
});
afterEach(async () => {
  await gateway.stop();
  await relay.close();
  await database.drop();
});

async function start(variables: Record<string, string> = {}): Promise<void> {
  gateway = await startTestGateway({ DATABASE_URL: relay.url, ...variables }, database);
  await until(200, '');
}

async function ready(): Promise<[number, { status: string; reasons: string[] }]> {
  const response = await fetch(`${gateway.url}/health/ready`);
  return [response.status, (await response.json()) as never];
}

const until = (status: number, reason: string) =>
  eventually(async () => {
    const [seen, { reasons }] = await ready();
    return seen === status && reasons.join() === reason;
  });

it('stays 200 and reports degraded while Postgres is unavailable and known keys work, and ok again afterwards', async () => {
  await start();
  relay.set('*', 'cut');
  await until(200, 'Postgres is unavailable; cached keys still work');
  expect(await ready()).toMatchObject([200, { status: 'degraded' }]);
  relay.set('*', 'none');
  await until(200, '');
  expect(await ready()).toMatchObject([200, { status: 'ok' }]);
});

it('says 503 once known keys work no longer, but not when only the connection that follows changes is cut', async () => {
  await start({ KEY_CACHE_STALE_MS: '100' });
  relay.set('postern-changes/2', 'cut');
  await until(200, 'changes to keys and providers are delayed');
  relay.set('*', 'frozen');
  await until(503, 'Postgres has been unavailable for longer than KEY_CACHE_STALE_MS');
  // However many ask, they wait for one connection; jobs in the background may hold a few others.
  const asked = await Promise.all(Array.from({ length: 20 }, ready));
  expect(asked.every(([status]) => status === 503)).toBe(true);
  const { waiting, busy } = gateway.gateway.app.get(LookupPool).counts;
  expect(waiting).toBe(0);
  expect(busy).toBeLessThan(5);
  relay.set('*', 'cut');
  await until(503, 'Postgres has been unavailable for longer than KEY_CACHE_STALE_MS');
  relay.set('postern-changes/2', 'none');
  relay.set('*', 'none');
  await until(200, '');
});

it('says degraded while limits are not exchanged, and ok once they are', async () => {
  await start();
  await gateway.createKey({ limits: { requests_per_minute: 60 } });
  relay.set('postern-limits', 'cut');
  await until(200, 'limits and budgets are not exchanged with Postgres');
  relay.set('postern-limits', 'none');
  await until(200, '');
});

it('says degraded while Postgres answers and takes no rows, and ok once it has them', async () => {
  const provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', [], 'ok'));
  });
  await start({ PROVIDER_URL: provider.url });
  await database.query('ALTER TABLE request_log RENAME TO out_of_reach');
  const headers = { authorization: `Bearer ${gateway.key}` };
  expect((await fetch(`${gateway.url}/v1/models`, { headers })).status).toBe(200);
  await until(200, 'Postgres is not accepting log rows');
  await database.query('ALTER TABLE out_of_reach RENAME TO request_log');
  await until(200, '');
  expect(await gateway.rowCount()).toBe(1);
  await provider.stop();
});

it('says 503 while the journal cannot be written', async () => {
  await start();
  const journal = gateway.gateway.app.get(Journal);
  jest.spyOn(journal, 'accepting', 'get').mockReturnValue(false);
  await until(503, 'the journal cannot be written');
  jest.restoreAllMocks();
  jest.spyOn(journal, 'degraded', 'get').mockReturnValue('EIO');
  await until(200, 'the journal is degraded');
  expect(await ready()).toMatchObject([200, { status: 'degraded' }]);
  jest.restoreAllMocks();
});
