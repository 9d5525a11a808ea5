import pg from 'pg';
import { insertRows } from '../../src/request-log/writer/insert-rows.js';
import {
  createPartitions,
  DAY_MS,
  dayOf,
  dropExpired,
  type Dropped,
  tableName,
} from '../../src/request-log/partitions.js';
import { awayFromMidnight } from '../support/away-from-midnight.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { never } from '../support/never.js';
import { insertRow, logRow } from './rows.js';

let database: TestDatabase;
let client: pg.Client;
let today: number;
const day = (offset: number) => today + offset * DAY_MS;

beforeAll(() => awayFromMidnight());
beforeEach(async () => {
  today = dayOf(Date.now());
  database = await createDatabase({ days: false });
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
  // Yesterday's, so that the clocks are trusted.
  await insertRow(database, new Date(day(-1)));
});
afterEach(async () => {
  await client.end();
  await database.drop();
});

const drop = (now = Date.now()): Promise<Dropped> =>
  dropExpired(client, { now, days: 30, stopped: () => false, isNeeded: () => Promise.resolve(false) });

async function daysWithRows(): Promise<number[]> {
  const rows = await database.query<{ ms: number }>(
    'SELECT extract(epoch FROM started_at)::float8 * 1000 AS ms FROM request_log ORDER BY 1',
  );
  return rows.map(({ ms }) => (dayOf(ms) - today) / DAY_MS);
}

describe('retention', () => {
  never('drops whole days, the last one kept being as old as the retention says', async () => {
    for (const offset of [-40, -31, -30, -29]) await insertRow(database, new Date(day(offset)));
    expect((await drop()).tables).toEqual([tableName(day(-40)), tableName(day(-31))]);
    expect(await daysWithRows()).toEqual([-30, -29, -1]);
    expect((await drop()).tables).toEqual([]);
  });

  it('drops a day again that came back with rows from an old journal', async () => {
    await insertRow(database, new Date(day(-31)));
    await drop();
    await insertRow(database, new Date(day(-31)));
    expect(await daysWithRows()).toEqual([-31, -1]);
    expect((await drop()).tables).toEqual([tableName(day(-31))]);
    expect(await daysWithRows()).toEqual([-1]);
  });

  never('drops nothing while only one of the two clocks says so', async () => {
    await insertRow(database, new Date(day(-20)));
    await createPartitions(client, [day(364)]);
    expect(await drop(day(365))).toEqual({ tables: [], postponed: false });
    expect(await daysWithRows()).toEqual([-20, -1]);
  });

  never('drops nothing on the first day after a pause or a jump of the clock', async () => {
    await insertRow(database, new Date(day(-40)));
    await client.query(`DROP TABLE ${tableName(day(-1))}`);
    expect(await drop()).toEqual({ tables: [], postponed: true });
    expect(await daysWithRows()).toEqual([-40]);
  });

  it('gives way to a long export rather than hold up writers, and drops when it is over', async () => {
    await insertRow(database, new Date(day(-40)));
    await createPartitions(client, [day(0)]);
    const exporting = new pg.Client({ connectionString: database.url });
    await exporting.connect();
    await exporting.query('BEGIN; DECLARE export CURSOR FOR SELECT * FROM request_log; FETCH 1 FROM export');
    const dropping = drop().catch((error: unknown) => error);
    const writing = new pg.Client({ connectionString: database.url });
    await writing.connect();
    // Longer than one attempt to drop, shorter than the export.
    await writing.query("SET lock_timeout = '5s'");
    for (let i = 0; i < 20; i++) await writing.query(insertRows([logRow(day(0))]));
    expect(await dropping).toMatchObject({ code: '55P03' });
    await exporting.query('COMMIT');
    expect((await drop()).tables).toEqual([tableName(day(-40))]);
    await Promise.all([exporting.end(), writing.end()]);
  });
});
