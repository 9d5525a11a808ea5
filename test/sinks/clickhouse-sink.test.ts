import type { ServerResponse } from 'node:http';
import type { SinkView } from '../../src/sinks/sinks.schema.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { eventually } from '../support/eventually.js';
import { error, FakeClickHouse } from './fake-clickhouse.js';
import { insertCalls, logIds } from './log-rows.js';

interface Stored {
  recorded_until: Date;
  batch_token: string | null;
}

let gateway: TestGateway;
let server: FakeClickHouse;
beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway.stop());
beforeEach(async () => {
  await gateway.database.query('DELETE FROM sink');
  await gateway.database.query('DELETE FROM request_log');
  server = await new FakeClickHouse().listen();
});
afterEach(() => server.close());

const create = () =>
  gateway.admin<SinkView>('POST', '/sinks', {
    name: 'warehouse',
    kind: 'clickhouse',
    url: server.url,
    target: 'postern.request_log',
  });
const get = () => gateway.admin<SinkView>('GET', '/sinks/warehouse');
const stored = async () =>
  (await gateway.database.query<Stored>('SELECT recorded_until, batch_token FROM sink'))[0]!;

it('inserts every row once, with the values that the log has', async () => {
  await insertCalls(gateway.database.url, 1_000);
  await create();
  await eventually(() => server.stored.length >= 1_000);
  await insertCalls(gateway.database.url, 7);
  await eventually(() => server.stored.length >= 1_007);
  expect(server.ids).toEqual(await logIds(gateway.database));
  await eventually(async () => (await get()).rows_sent === 1_007);
  const row = server.stored[0]!;
  const { attempts: _, team: __, key: ___, ...shown } = await gateway.admin('GET', `/requests/${row.id}`);
  expect(Object.keys(row).sort()).toEqual(Object.keys(shown).sort());
  const times = Object.entries(row).map(([name, value]) =>
    typeof value === 'string' && name.endsWith('_at') ? [name, new Date(value).toISOString()] : [name, value],
  );
  expect(Object.fromEntries(times)).toEqual(shown);
});

it('inserts under the same token after its leader died with a batch under way, stored or not', async () => {
  await insertCalls(gateway.database.url, 300);
  let isStored = false;
  // The response never comes.
  server.behave = (_, __, store) => void (isStored && store());
  await create();
  for (const next of [true, false]) {
    const before = server.inserts.length;
    if (before === 0) await eventually(() => server.inserts.length > 0);
    isStored = next;
    const [{ batch_token: token }] = [await stored()];
    expect(server.inserts.at(-1)!.token).toBe(`${token}:0`);
    const sent = server.inserts.length;
    await gateway.database.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'postern-sinks' AND datname = current_database()`,
    );
    await server.close();
    await server.listen();
    await eventually(() => server.inserts.length > sent);
  }
  server.accept();
  await server.close();
  await server.listen();
  await eventually(async () => (await get()).rows_sent === 300);
  expect(new Set(server.inserts.map(({ token }) => token)).size).toBe(1);
  expect(new Set(server.inserts.map(({ body }) => body)).size).toBe(1);
  expect(server.ids).toEqual(await logIds(gateway.database));
  // A moment after the rows: it has nothing to send any more.
  await eventually(async () => (await get()).state === 'current');
  expect((await get()).rows_sent).toBe(300);
});

it('leaves the cursor where it is until ClickHouse has stored the batch', async () => {
  await insertCalls(gateway.database.url, 50);
  server.behave = error(243, 'NOT_ENOUGH_SPACE', 'Cannot reserve 1.00 MiB, not enough space');
  await create();
  await eventually(() => server.inserts.length >= 3);
  const [first] = await gateway.database.query<{ at: Date }>(
    'SELECT min(recorded_at) AS at FROM request_log',
  );
  expect((await stored()).recorded_until < first!.at).toBe(true);
  expect(await get()).toMatchObject({
    rows_sent: 0,
    state: 'failing',
    last_error: expect.stringMatching(/^ClickHouse: NOT_ENOUGH_SPACE: .*Cannot reserve/) as string,
  });
  server.accept();
  await eventually(async () => (await get()).rows_sent === 50);
  expect(server.ids).toEqual(await logIds(gateway.database));
});

it('reads the next rows while a batch is sent, but begins their batch when that one has ended', async () => {
  await insertCalls(gateway.database.url, 20_500);
  const held: [ServerResponse, () => void][] = [];
  server.behave = (_, res, store) => void held.push([res, store]);
  await create();
  await eventually(() => held.length === 1);
  const before = await stored();
  expect(server.inserts[0]!.rows).toHaveLength(20_000);
  expect(server.inserts[0]!.token).toBe(`${before.batch_token}:0`);
  // The last query of the leader: it has read the 500 rows, and asks nothing until the batch has ended.
  await eventually(
    async () =>
      (
        await gateway.database.query(
          `SELECT FROM pg_stat_activity WHERE application_name = 'postern-sinks' AND datname = current_database()
             AND state = 'idle' AND query LIKE '%row_number() OVER places%'`,
        )
      ).length === 1,
  );
  expect(await stored()).toEqual(before);
  // One of the rows that are read already.
  const sent = new Set(server.inserts[0]!.rows.map(({ id }) => id));
  const ahead = (await logIds(gateway.database)).find((id) => !sent.has(id))!;
  await gateway.database.query(
    `UPDATE request_log SET cost_usd = 7, (recorded_at, repaired_at) = (SELECT t, t FROM date_trunc('milliseconds', clock_timestamp()) t)
     WHERE id = $1`,
    [ahead],
  );
  server.accept();
  for (const [res, store] of held) {
    store();
    res.writeHead(200, { 'x-clickhouse-summary': '{}' }).end();
  }
  await eventually(() =>
    server.stored.some(({ id, cost_usd: cost }) => id === ahead && cost === '7.000000000'),
  );
  await eventually(async () => (await get()).rows_sent === 20_501);
  // Both versions of the updated row, and every other one once.
  expect(server.ids).toEqual([...(await logIds(gateway.database)), ahead].sort());
});
