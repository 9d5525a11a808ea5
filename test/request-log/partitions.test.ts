import { Logger } from '@nestjs/common';
import pg from 'pg';
import { v7 as uuidv7 } from 'uuid';
import type { Settings } from '../../src/config/settings.js';
import type { DatabaseService } from '../../src/database/database.service.js';
import { insertRows } from '../../src/request-log/insert-rows.js';
import type { LogRow } from '../../src/request-log/columns.js';
import { DAY_MS, type Day, dayOf, tableName } from '../../src/request-log/partition-day.js';
import { listPartitions } from '../../src/request-log/partition-list.js';
import { keepPartitions, makeAhead, type RoundReport } from '../../src/request-log/partition-round.js';
import { PartitionsService } from '../../src/request-log/partitions.service.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { insertRow, logRow } from './rows.js';

let database: TestDatabase;
let client: pg.Client;
const clients: pg.Client[] = [];
const TODAY = dayOf(Date.now());
const day = (offset: number): Day => TODAY + offset * DAY_MS;

async function connect(): Promise<pg.Client> {
  const made = new pg.Client({ connectionString: database.url });
  await made.connect();
  clients.push(made);
  return made;
}

const round = (orders: Partial<Parameters<typeof keepPartitions>[1]> = {}): Promise<RoundReport> =>
  keepPartitions(client, { now: Date.now(), retentionDays: 90, stopped: () => false, ...orders });

/** Rows by the table they lie in. */
async function rowsByTable(): Promise<Record<string, number>> {
  const rows = await database.query<{ table: string; count: number }>(
    'SELECT tableoid::regclass::text AS table, count(*)::int AS count FROM request_log GROUP BY 1',
  );
  return Object.fromEntries(rows.map(({ table, count }) => [table, count]));
}

async function fillDefault(of: Day, count: number): Promise<void> {
  await database.query(
    `INSERT INTO request_log (started_at, id, team_id, key_id, provider, method, streamed, outcome)
     SELECT to_timestamp($1 + i * 0.001), gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'p', 'POST', false,
            'completed' FROM generate_series(1, $2) AS i`,
    [of / 1_000, count],
  );
}

beforeAll(() => {
  Logger.overrideLogger(false);
});
beforeEach(async () => {
  database = await createDatabase();
  client = await connect();
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((each) => each.end().catch(() => {})));
  await database.drop();
});

describe('partitions of the request log', () => {
  it('are UTC days, today and seven more, whatever the time zone and date style of the database', async () => {
    for (const setting of ["timezone TO 'Pacific/Auckland'", "datestyle TO 'SQL, DMY'"]) {
      await database.query(`ALTER DATABASE ${new URL(database.url).pathname.slice(1)} SET ${setting}`);
    }
    client = await connect();
    await makeAhead(client, Date.now());
    const wanted = Array.from({ length: 8 }, (_, i) => ({
      table: tableName(day(i)),
      from: day(i),
      to: day(i + 1),
    }));
    expect(await listPartitions(client)).toEqual(wanted);
    expect((await round()).made).toEqual([]);
    await insertRow(database, new Date(day(1) - 1));
    await insertRow(database, new Date(day(1)));
    expect(await rowsByTable()).toEqual({ [tableName(day(0))]: 1, [tableName(day(1))]: 1 });
  });

  it('are made for the clock of this process and for that of the server', async () => {
    await round({ now: day(100) + DAY_MS - 1 });
    const days = (await listPartitions(client)).map(({ from }) => from);
    expect(days).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 100, 101, 102, 103, 104, 105, 106, 107].map(day));
  });

  it('have the indexes of the log, and nothing left of their making', async () => {
    await insertRow(database, new Date(day(0)));
    await round();
    const [made] = await database.query(
      `SELECT (SELECT count(*)::int FROM pg_index WHERE indrelid = $1::regclass) AS indexes,
              (SELECT count(*)::int FROM pg_constraint WHERE conrelid = $1::regclass AND contype = 'c') AS checks,
              obj_description($1::regclass, 'pg_class') AS mark`,
      [tableName(day(0))],
    );
    expect(made).toEqual({ indexes: 4, checks: 0, mark: null });
  });

  it('take over what fell into the default one while there was none', async () => {
    await fillDefault(day(0), 12_000);
    await fillDefault(day(-20), 3);
    await fillDefault(day(400), 2);
    const before = await database.query('SELECT * FROM request_log ORDER BY id');
    expect(await round()).toMatchObject({ moved: 12_005, dropped: [] });
    expect(await rowsByTable()).toEqual({
      [tableName(day(0))]: 12_000,
      [tableName(day(-20))]: 3,
      [tableName(day(400))]: 2,
    });
    expect(await database.query('SELECT * FROM request_log ORDER BY id')).toEqual(before);
  });

  it('have their block ranges closed when their day is over', async () => {
    await fillDefault(day(-2), 10);
    await round();
    const [index] = await database.query<{ open: number }>(
      "SELECT brin_summarize_new_values(indexrelid) AS open FROM pg_index WHERE indrelid = $1::regclass AND indexrelid::regclass::text LIKE '%recorded_at%'",
      [tableName(day(-2))],
    );
    expect(index).toEqual({ open: 0 });
  });

  it('lose, double or refuse nothing that is written while rows are moved', async () => {
    await fillDefault(day(0), 20_000);
    const written: LogRow[] = [];
    let isMoving = true;
    const write = async (writer: pg.Client, offset: number) => {
      while (isMoving) {
        const rows = Array.from({ length: 20 }, () => logRow(day(offset)));
        // Twice, as after a lost answer: the second must meet the first wherever that is by then.
        await writer.query(insertRows(rows));
        await writer.query(insertRows(rows));
        written.push(...rows);
      }
    };
    const reader = await connect();
    const seen = new Set<unknown>();
    const read = async () => {
      while (isMoving) {
        const { rows } = await reader.query(
          "SELECT count(*)::int AS n FROM request_log WHERE provider = 'p'",
        );
        seen.add((rows[0] as { n: number }).n);
      }
    };
    const writers = [
      read(),
      write(await connect(), 0),
      write(await connect(), 3),
      write(await connect(), -2),
    ];
    await eventually(() => written.length > 200);
    const report = await round().finally(() => (isMoving = false));
    await Promise.all(writers);
    expect([...seen]).toEqual([20_000]);
    expect(report.moved).toBeGreaterThan(20_200);
    const [counted] = await database.query<{ rows: number; ids: number; strays: number }>(
      `SELECT count(*)::int AS rows, count(DISTINCT id)::int AS ids,
              count(*) FILTER (WHERE tableoid = 'request_log_default'::regclass)::int AS strays FROM request_log`,
    );
    const all = 20_000 + written.length;
    expect(counted).toMatchObject({ rows: all, ids: all, strays: 0 });
  });

  it('get the row, and the mended one, of a transaction that was under way when the move began', async () => {
    const dead: LogRow = { ...logRow(day(0)), outcome: 'interrupted' };
    await client.query(insertRows([dead]));
    const slow = await connect();
    await slow.query('BEGIN');
    await slow.query(insertRows([logRow(day(0)), { ...dead, outcome: 'completed', status: 200 }]));
    const moving = round();
    await eventually(async () => {
      const waiting = await database.query(
        "SELECT FROM pg_locks WHERE NOT granted AND relation = 'request_log'::regclass AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
      );
      return waiting.length > 0;
    });
    await slow.query('COMMIT');
    await moving;
    expect(await rowsByTable()).toEqual({ [tableName(day(0))]: 2 });
    expect(await database.query('SELECT outcome FROM request_log WHERE id = $1', [dead.id])).toEqual([
      { outcome: 'completed' },
    ]);
  });

  it('are taken up where a killed process left them, and a table of somebody else is left alone', async () => {
    await fillDefault(day(0), 6_000);
    let steps = 0;
    await expect(round({ stopped: () => ++steps > 1 })).rejects.toThrow();
    expect(await rowsByTable()).toEqual({ request_log_default: 6_000 });
    const table = tableName(day(1));
    await database.query(`DROP TABLE ${table}; CREATE TABLE ${table} AS SELECT 'an archive' AS precious`);
    await round();
    expect(await rowsByTable()).toEqual({ [tableName(day(0))]: 6_000 });
    expect(await database.query(`SELECT * FROM ${table}`)).toEqual([{ precious: 'an archive' }]);
    expect((await listPartitions(client)).map((each) => each.table)).toContain(`${table}_1`);
  });

  it('give way to a long read rather than hold up writers, and are made when it is over', async () => {
    await insertRow(database, new Date(day(0)));
    const reader = await connect();
    await reader.query('BEGIN');
    await reader.query('SELECT FROM request_log');
    await expect(round()).rejects.toMatchObject({ code: '55P03' });
    await insertRow(database, new Date(day(0)));
    await reader.query('COMMIT');
    expect(await round()).toMatchObject({ moved: 2 });
    expect(await rowsByTable()).toEqual({ [tableName(day(0))]: 2 });
  });

  it('are made once by replicas that start at once', async () => {
    await insertRow(database, new Date(day(-3)));
    const hooks: (() => Promise<void>)[] = [];
    const whenReady = (hook: () => Promise<void>) => void hooks.push(hook);
    const env = { databaseUrl: database.url, requestLogRetentionDays: 90, worker: 1 } as Settings;
    const replicas = [1, 2, 3].map(
      () => new PartitionsService(env, { whenReady, notReady: null } as unknown as DatabaseService),
    );
    await Promise.all(hooks.map((hook) => hook()));
    await eventually(async () => (await listPartitions(client)).length === 9);
    await Promise.all(replicas.map((replica) => replica.onApplicationShutdown()));
    const sum = (of: 'made' | 'moved' | 'failures') =>
      replicas.reduce((total, { counts }) => total + counts[of], 0);
    expect({ made: sum('made'), moved: sum('moved'), failures: sum('failures') }).toEqual({
      made: 9,
      moved: 1,
      failures: 0,
    });
    expect(await rowsByTable()).toEqual({ [tableName(day(-3))]: 1 });
  });

  it('hold each id once when the clock steps back over midnight', async () => {
    await round();
    const late = uuidv7({ msecs: day(1) + 1 });
    const rows = [day(1) + 1, day(1) - 1].map((ms) => logRow(ms));
    rows[0] = { ...rows[0]!, id: late };
    await client.query(insertRows(rows));
    await client.query(insertRows(rows));
    expect(await rowsByTable()).toEqual({ [tableName(day(0))]: 1, [tableName(day(1))]: 1 });
  });
});
