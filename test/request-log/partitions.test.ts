import { Logger } from '@nestjs/common';
import pg from 'pg';
import { v7 as uuidv7 } from 'uuid';
import type { Settings } from '../../src/config/settings.js';
import type { DatabaseService } from '../../src/database/database.service.js';
import { insertCreatingDays, insertRows } from '../../src/request-log/writer/insert-rows.js';
import { PartitionsService } from '../../src/request-log/partitions.service.js';
import {
  createDaysAhead,
  createPartitions,
  DAY_MS,
  dayOf,
  listPartitions,
  tableName,
} from '../../src/request-log/partitions.js';
import { awayFromMidnight } from '../support/away-from-midnight.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { setPatience } from '../support/patience.js';
import { insertRow, logRow } from './rows.js';

let database: TestDatabase;
let client: pg.Client;
const clients: pg.Client[] = [];
let today: number;
const day = (offset: number): number => today + offset * DAY_MS;

async function connect(): Promise<pg.Client> {
  const made = new pg.Client({ connectionString: database.url });
  await made.connect();
  clients.push(made);
  return made;
}

/** Rows by the table they lie in. */
async function rowsByTable(): Promise<Record<string, number>> {
  const rows = await database.query<{ table: string; count: number }>(
    'SELECT tableoid::regclass::text AS table, count(*)::int AS count FROM request_log GROUP BY 1',
  );
  return Object.fromEntries(rows.map(({ table, count }) => [table, count]));
}

beforeAll(async () => {
  Logger.overrideLogger(false);
  await awayFromMidnight();
});
beforeEach(async () => {
  today = dayOf(Date.now());
  database = await createDatabase({ days: false });
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
    await createDaysAhead(client);
    const wanted = Array.from({ length: 8 }, (_, i) => ({
      table: tableName(day(i)),
      from: day(i),
      to: day(i + 1),
    }));
    expect(await listPartitions(client)).toEqual(wanted);
    expect(await createDaysAhead(client)).toEqual([]);
    await insertRow(database, new Date(day(1) - 1));
    await insertRow(database, new Date(day(1)));
    expect(await rowsByTable()).toEqual({ [tableName(day(0))]: 1, [tableName(day(1))]: 1 });
  });

  it('have the indexes of the log, attached, and no constraint of their own', async () => {
    await createDaysAhead(client);
    const [created] = await database.query(
      `SELECT (SELECT count(*)::int FROM pg_index JOIN pg_inherits ON inhrelid = indexrelid
               WHERE indrelid = $1::regclass AND indisvalid) AS indexes,
              (SELECT count(*)::int FROM pg_index WHERE indrelid = 'request_log'::regclass) AS wanted,
              (SELECT count(*)::int FROM pg_constraint WHERE conrelid = $1::regclass AND contype = 'c') AS checks`,
      [tableName(day(0))],
    );
    expect(created).toEqual({ indexes: 4, wanted: 4, checks: 0 });
  });

  never('are created for the day of a row that has none, however old', async () => {
    await insertCreatingDays(client, [logRow(day(-4_000)), logRow(day(0)), logRow(day(-4_000) + 1)]);
    expect(await rowsByTable()).toEqual({ [tableName(day(-4_000))]: 2, [tableName(day(0))]: 1 });
  });

  it('are created beside readers and writers, which wait for nothing', async () => {
    await createPartitions(client, [day(0)]);
    await client.query(insertRows([logRow(day(0))]));
    const exporting = await connect();
    await exporting.query('BEGIN; DECLARE export CURSOR FOR SELECT * FROM request_log; FETCH 1 FROM export');
    const writing = await connect();
    await writing.query('BEGIN');
    await writing.query(insertRows([logRow(day(0))]));
    const lateReader = await connect();
    // Any of these would run into its timeout if it had to wait for one of the others.
    for (const each of [client, lateReader]) await each.query("SET lock_timeout = '1s'");
    expect(await createPartitions(client, [day(1)])).toEqual([tableName(day(1))]);
    await client.query(insertRows([logRow(day(1))]));
    await lateReader.query('SELECT count(*) FROM request_log');
    await writing.query('COMMIT');
    await exporting.query('FETCH ALL FROM export; COMMIT');
    expect(await rowsByTable()).toEqual({ [tableName(day(0))]: 2, [tableName(day(1))]: 1 });
  });

  it('do not hold up a writer that comes while their own creation is under way', async () => {
    await createPartitions(client, [day(0)]);
    // ANALYZE and VACUUM hold the lock that ATTACH needs: the creation waits, the writer behind it must not.
    const analyzing = await connect();
    await analyzing.query('BEGIN; LOCK TABLE ONLY request_log IN SHARE UPDATE EXCLUSIVE MODE');
    const restore = setPatience(1, 'the lock of partitions');
    const creating = createPartitions(client, [day(1)]).catch((error: unknown) => error);
    restore();
    const writing = await connect();
    await writing.query("SET lock_timeout = '1s'");
    await writing.query(insertRows([logRow(day(0))]));
    expect(await creating).toMatchObject({ code: '55P03' });
    await analyzing.query('COMMIT');
    expect(await createPartitions(client, [day(1)])).toEqual([tableName(day(1))]);
  });

  it('are created once by processes that start at once', async () => {
    const hooks: (() => Promise<void>)[] = [];
    const whenReady = (hook: () => Promise<void>) => void hooks.push(hook);
    const env = { databaseUrl: database.url, requestLogRetentionDays: 90, worker: 1 } as Settings;
    const replicas = [1, 2, 3].map(
      () => new PartitionsService(env, { whenReady, notReady: null } as unknown as DatabaseService),
    );
    const writers = await Promise.all([1, 2, 3].map(() => connect()));
    const write = (each: pg.Client) => insertCreatingDays(each, [logRow(day(-3)), logRow(day(2))]);
    await Promise.all([...hooks.map((hook) => hook()), ...writers.map(write)]);
    await eventually(async () => (await listPartitions(client)).length === 9);
    await Promise.all(replicas.map((replica) => replica.onApplicationShutdown()));
    const days = (await listPartitions(client)).map(({ from }) => from);
    expect(days).toEqual([-3, 0, 1, 2, 3, 4, 5, 6, 7].map(day));
    expect(await rowsByTable()).toEqual({ [tableName(day(-3))]: 3, [tableName(day(2))]: 3 });
  });

  never(
    'leave a table of the same name alone, and fit between partitions that were made by hand',
    async () => {
      const table = tableName(day(1));
      await database.query(`CREATE TABLE ${table} AS SELECT 'an archive' AS precious`);
      const noon = (offset: number) => `to_timestamp(${(day(offset) + DAY_MS / 2) / 1_000})`;
      await database.query(
        `CREATE TABLE by_hand PARTITION OF request_log FOR VALUES FROM (${noon(1)}) TO (${noon(3)})`,
      );
      await insertCreatingDays(
        client,
        [day(1), day(2), day(3) + 1, day(4) - 1].map((ms) => logRow(ms)),
      );
      expect(await rowsByTable()).toEqual({ [`${table}_1`]: 1, by_hand: 2, [tableName(day(3))]: 1 });
      expect(await database.query(`SELECT * FROM ${table}`)).toEqual([{ precious: 'an archive' }]);
    },
  );

  never('hold each id once when the clock steps back over midnight', async () => {
    const late = uuidv7({ msecs: day(1) + 1 });
    const rows = [day(1) + 1, day(1) - 1].map((ms) => logRow(ms));
    rows[0] = { ...rows[0]!, id: late };
    await insertCreatingDays(client, rows);
    await insertCreatingDays(client, rows);
    expect(await rowsByTable()).toEqual({ [tableName(day(0))]: 1, [tableName(day(1))]: 1 });
  });
});
