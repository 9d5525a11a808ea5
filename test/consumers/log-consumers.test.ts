import { Injectable, Logger, Module } from '@nestjs/common';
import pg from 'pg';
import type { EntityManager } from 'typeorm';
import type { ConsumedRow } from '../../src/consumers/consumer-rows.js';
import { type LogConsumer, LogConsumers } from '../../src/consumers/log-consumers.js';
import { PartitionsService } from '../../src/request-log/partitions.service.js';
import { insertRow } from '../request-log/rows.js';
import { addToApp } from '../support/app-modules.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { setPatience } from '../support/patience.js';

const DAY_MS = 86_400_000;

let consumers: Record<string, LogConsumer>;

@Injectable()
class Books {
  constructor(registry: LogConsumers) {
    for (const [name, consumer] of Object.entries(consumers)) registry.register(name, consumer);
  }
}

@Module({ providers: [Books] })
class BooksModule {}

addToApp(BooksModule);

let database: TestDatabase;
let gateways: TestGateway[];
beforeEach(async () => {
  gateways = [];
  database = await createDatabase();
  // Without a key: a row that came twice is there twice.
  await database.query('CREATE TABLE book (consumer text, id uuid, cost_usd numeric)');
});
afterEach(async () => {
  for (const gateway of gateways) await gateway.stop();
  await database.drop();
});

const start = async (variables?: Record<string, string>) => {
  const gateway = await startTestGateway(variables, database);
  gateways.push(gateway);
  return gateway;
};

const store = (name: string) => async (manager: EntityManager, rows: readonly ConsumedRow[]) => {
  for (const { id, cost_usd } of rows)
    await manager.query('INSERT INTO book VALUES ($1, $2, $3)', [name, id, cost_usd]);
};

const insert = async (count: number) => {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) ids.push(await insertRow(database, new Date(), { cost_usd: '0.5' }));
  return ids.sort();
};

const bookOf = async (name: string) =>
  (await database.query<{ id: string }>('SELECT id FROM book WHERE consumer = $1 ORDER BY id', [name])).map(
    ({ id }) => id,
  );

const untilStored = (name: string, count: number) =>
  eventually(async () => {
    const ids = await bookOf(name);
    return ids.length >= count && ids;
  });

it('gives each row once, while two gateways run and the one that gives them is stopped', async () => {
  consumers = { books: { from: 'start', rows: store('books') } };
  const first = await insert(20);
  await start();
  await untilStored('books', 20);
  await start();
  const second = await insert(20);
  await gateways.shift()!.stop();
  const third = await insert(20);
  expect(await untilStored('books', 60)).toEqual([...first, ...second, ...third].sort());
});

it('gives rows in the form that finished calls have', async () => {
  let seen: ConsumedRow | undefined;
  consumers = { books: { from: 'start', rows: (_, [row]) => (seen = row) } };
  const id = await insertRow(database, new Date(), { cost_usd: '0.5', tags: '{"a":"b"}', client_ip: '::1' });
  await start();
  const row = await eventually(() => seen);
  expect(row).toMatchObject({
    id,
    cost_usd: '0.500000000',
    request_bytes: 10,
    tags: '{"a": "b"}',
    client_ip: '::1',
    repaired_at: null,
  });
  expect(new Date(row.recorded_at).toISOString()).toBe(row.recorded_at);
});

it('rolls back what a consumer wrote before it failed, and gives the rows again; others go on', async () => {
  jest.spyOn(Logger.prototype, 'error').mockImplementation();
  let calls = 0;
  const failing: LogConsumer['rows'] = async (manager, rows) => {
    await store('failing')(manager, rows);
    calls++;
    if (calls === 1) throw new Error('the first try');
    // Its error is caught: the transaction is lost all the same.
    if (calls === 2) await manager.query('SELECT 1 / 0').catch(() => {});
  };
  consumers = {
    failing: { from: 'start', rows: failing },
    steady: { from: 'start', rows: store('steady') },
  };
  const ids = await insert(3);
  const { url } = await start();
  expect(await untilStored('failing', 3)).toEqual(ids);
  expect(calls).toBe(3);
  expect(await untilStored('steady', 3)).toEqual(ids);
  // They count what is committed.
  await eventually(async () => {
    const metrics = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
    const lines = (await metrics.text()).split('\n');
    return [
      'postern_log_consumer_failures_total{consumer="failing"} 2',
      'postern_log_consumer_failures_total{consumer="steady"} 0',
      'postern_log_consumer_rows_total{consumer="failing"} 3',
    ].every((line) => lines.includes(line));
  });
  jest.restoreAllMocks();
});

it.each(['ROLLBACK', 'ROLLBACK; BEGIN'])(
  'gives rows again to a consumer that ended the transaction by %s, and says so',
  async (statement) => {
    const logged = jest.spyOn(Logger.prototype, 'error').mockImplementation();
    let calls = 0;
    const rows: LogConsumer['rows'] = async (manager, some) => {
      await store('ending')(manager, some);
      if (++calls === 1) for (const one of statement.split(';')) await manager.query(one);
    };
    consumers = { ending: { from: 'start', rows } };
    const ids = await insert(2);
    await start();
    expect(await untilStored('ending', 2)).toEqual(ids);
    expect(calls).toBe(2);
    expect(logged.mock.calls.map(String).join('\n')).toContain('it must not commit or roll back');
    jest.restoreAllMocks();
  },
);

it('stores nothing of a consumer that goes on after its time', async () => {
  const logged = jest.spyOn(Logger.prototype, 'error').mockImplementation();
  const restore = setPatience(1 / 1_500, 'a consumer');
  let late: Promise<unknown> | undefined;
  const rows: LogConsumer['rows'] = async (manager, some) => {
    if (late === undefined) {
      restore();
      // Its time is over while Postgres works for it: what it asks next comes after the transaction.
      late = manager.query('SELECT pg_sleep(1)').then(() => store('late')(manager, some));
      await late;
    }
    await store('late')(manager, some);
  };
  consumers = { late: { from: 'start', rows } };
  const ids = await insert(2);
  await start();
  expect(await untilStored('late', 2)).toEqual(ids);
  await expect(late).rejects.toThrow();
  expect(await bookOf('late')).toEqual(ids);
  expect(logged.mock.calls.map(String).join('\n')).toContain('it took longer than');
  jest.restoreAllMocks();
});

it('stores nothing of one whose transaction has failed, and that goes on all the time', async () => {
  jest.spyOn(Logger.prototype, 'error').mockImplementation();
  const restore = setPatience(1 / 1_500, 'a consumer');
  let late: Promise<void> | undefined;
  const goOn = async (...[manager, some]: Parameters<LogConsumer['rows']>) => {
    await manager.query('SELECT 1 / 0').catch(() => {});
    while (manager.queryRunner?.isReleased === false) await store('failed')(manager, some).catch(() => {});
  };
  const rows: LogConsumer['rows'] = async (manager, some) => {
    if (late === undefined) {
      restore();
      await (late = goOn(manager, some));
    }
    await store('failed')(manager, some);
  };
  consumers = { failed: { from: 'start', rows } };
  const ids = await insert(2);
  await start();
  expect(await untilStored('failed', 2)).toEqual(ids);
  await late;
  expect(await bookOf('failed')).toEqual(ids);
  jest.restoreAllMocks();
});

it('gives rows again to a consumer that waits for ever', async () => {
  const logged = jest.spyOn(Logger.prototype, 'error').mockImplementation();
  const restore = setPatience(1 / 1_500, 'a consumer');
  let calls = 0;
  const rows: LogConsumer['rows'] = async (manager, some) => {
    if (++calls === 1) {
      // For the second call only: this one's time is running.
      restore();
      await new Promise(() => {});
    }
    await store('waiting')(manager, some);
  };
  consumers = { waiting: { from: 'start', rows } };
  const ids = await insert(2);
  await start();
  expect(await untilStored('waiting', 2)).toEqual(ids);
  const told = logged.mock.calls.map(String).join('\n');
  expect(told).toContain('"waiting" failed and gets the same rows again');
  jest.restoreAllMocks();
});

it('begins with the calls after the start, or with the oldest row, and continues where it was', async () => {
  consumers = { late: { rows: store('late') }, early: { from: 'start', rows: store('early') } };
  const old = await insertRow(database, new Date(Date.now() - DAY_MS));
  // Later than the old row is recorded, by the clock that counts.
  await database.find(
    `SELECT WHERE clock_timestamp() > (SELECT max(recorded_at) FROM request_log) + interval '2 ms'`,
  );
  await start();
  const [next] = await insert(1);
  expect(await untilStored('early', 2)).toEqual([old, next].sort());
  expect(await untilStored('late', 1)).toEqual([next]);
  await gateways.pop()!.stop();
  const [between] = await insert(1);
  await start();
  expect(await untilStored('late', 2)).toEqual([next, between].sort());
  expect(await untilStored('early', 3)).toEqual([old, next, between].sort());
});

it('counts and reports once the rows that retention removes, at a second try, before a consumer had them', async () => {
  consumers = { slow: { from: 'start', rows: () => Promise.reject(new Error('not now')) } };
  jest.spyOn(Logger.prototype, 'error').mockImplementation();
  const warned: string[] = [];
  jest.spyOn(Logger.prototype, 'warn').mockImplementation((line) => void warned.push(String(line)));
  const old = new Date(Date.now() - 40 * DAY_MS);
  for (let i = 0; i < 3; i++) await insertRow(database, old);
  await insertRow(database, new Date(Date.now() - DAY_MS));
  await database.query(
    `INSERT INTO log_consumer (name, recorded_until, recorded_until_id)
     VALUES ('gone', 'epoch', gen_random_uuid()), ('done', 'infinity', gen_random_uuid())`,
  );
  await start({ REQUEST_LOG_RETENTION_DAYS: '30' });
  const partitions = gateways[0]!.gateway.app.get(PartitionsService, { strict: false });
  const reader = new pg.Client({ connectionString: database.url });
  await reader.connect();
  await reader.query('BEGIN; LOCK TABLE request_log IN ACCESS SHARE MODE');
  const isWaiting = async () =>
    (
      await database.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
           AND application_name = 'postern-partitions' AND query LIKE '%request_log_drop_partition%'`,
      )
    ).length > 0;
  // The sums of usage keep the rows until they have them.
  await eventually(() => {
    partitions.onSchedule();
    return isWaiting();
  });
  // It gives way to the reader.
  await eventually(async () => !(await isWaiting()));
  await reader.query('COMMIT');
  await reader.end();
  const reports = () => warned.filter((line) => line.includes('that the consumer "slow" had not had'));
  await eventually(() => {
    partitions.onSchedule();
    return reports().length > 0;
  });
  const missed = 'SELECT name, missed_rows::int AS rows FROM log_consumer ORDER BY name';
  expect(await database.query(missed)).toEqual([
    { name: 'done', rows: 0 },
    { name: 'gone', rows: 3 },
    { name: 'slow', rows: 3 },
  ]);
  expect(reports()).toHaveLength(1);
  jest.restoreAllMocks();
});

it('rejects two consumers of one name', () => {
  const registry = new LogConsumers();
  registry.register('books', { rows: () => {} });
  expect(() => registry.register('books', { rows: () => {} })).toThrow('have the name "books"');
});

it('rejects a consumer that is registered after the start', async () => {
  consumers = {};
  const { gateway } = await start();
  const registry = gateway.app.get(LogConsumers, { strict: false });
  expect(() => registry.register('late', { rows: () => {} })).toThrow(
    '"late" of the request log is registered too late',
  );
});
