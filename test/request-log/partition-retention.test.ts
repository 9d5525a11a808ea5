import pg from 'pg';
import { DAY_MS, dayOf, tableName } from '../../src/request-log/partition-day.js';
import { keepPartitions, type RoundReport } from '../../src/request-log/partition-round.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { insertRow } from './rows.js';

let database: TestDatabase;
let client: pg.Client;
const TODAY = dayOf(Date.now());
const day = (offset: number) => TODAY + offset * DAY_MS;

beforeEach(async () => {
  database = await createDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
  // Yesterday's, so that the log is one that has been kept.
  await insertRow(database, new Date(day(-1)));
  await round();
});
afterEach(async () => {
  await client.end();
  await database.drop();
});

const round = (now = Date.now()): Promise<RoundReport> =>
  keepPartitions(client, { now, retentionDays: 30, stopped: () => false });

async function daysWithRows(): Promise<number[]> {
  const rows = await database.query<{ ms: number }>(
    'SELECT extract(epoch FROM started_at)::float8 * 1000 AS ms FROM request_log ORDER BY 1',
  );
  return rows.map(({ ms }) => (dayOf(ms) - TODAY) / DAY_MS);
}

/** Puts a row on a day and gives the day its partition, as if the day had been lived through. */
async function live(offset: number): Promise<void> {
  await client.query(`CREATE TABLE ${tableName(day(offset))} PARTITION OF request_log
    FOR VALUES FROM ('${new Date(day(offset)).toISOString()}') TO ('${new Date(day(offset + 1)).toISOString()}')`);
  await insertRow(database, new Date(day(offset)));
}

describe('retention', () => {
  it('drops whole days, the last one kept being as old as the retention says', async () => {
    for (const offset of [-40, -31, -30, -29]) await live(offset);
    const { dropped } = await round();
    expect(dropped).toEqual([tableName(day(-40)), tableName(day(-31))]);
    expect(await daysWithRows()).toEqual([-30, -29, -1]);
    expect((await round()).dropped).toEqual([]);
  });

  it('lets a replay into a dropped day be seen for a round, and makes no day of it again', async () => {
    await live(-31);
    await round();
    await insertRow(database, new Date(day(-31)));
    await insertRow(database, new Date(day(-3)));
    expect(await daysWithRows()).toEqual([-31, -3, -1]);
    expect(await round()).toMatchObject({ made: [day(-3)], moved: 1, dropped: [] });
    expect(await daysWithRows()).toEqual([-3, -1]);
  });

  it('drops nothing while only one of the two clocks says so', async () => {
    await live(-20);
    expect(await round(day(365))).toMatchObject({ dropped: [] });
    expect(await round(day(366))).toMatchObject({ dropped: [] });
    expect(await daysWithRows()).toEqual([-20, -1]);
  });

  it('drops nothing on the first day after a pause or a leap of the clock', async () => {
    await live(-40);
    await client.query(`DROP TABLE ${tableName(day(-1))}`);
    await insertRow(database, new Date(day(-35)));
    expect(await round()).toMatchObject({ dropped: [], moved: 1, kept: true });
    expect(await daysWithRows()).toEqual([-40, -35]);
  });
});
