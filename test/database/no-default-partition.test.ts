import { DataSource } from 'typeorm';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { migrate } from '../../src/database/migrate.js';
import { MIGRATIONS } from '../../src/database/migrations.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { insertRow } from '../request-log/rows.js';

let database: TestDatabase;
let dataSource: DataSource;

/** A database as the release before left it: with a default partition. */
beforeEach(async () => {
  database = await createDatabase({ empty: true });
  const upTo = MIGRATIONS.findIndex(({ name }) => name.startsWith('NoDefaultPartition'));
  dataSource = new DataSource({
    ...dataSourceOptions(database.url, { applicationName: 'postern-test', poolSize: 1 }),
    migrations: MIGRATIONS.slice(0, upTo),
  });
  await dataSource.initialize();
  await dataSource.runMigrations();
});
afterEach(async () => {
  if (dataSource.isInitialized) await dataSource.destroy();
  await database.drop();
});

const insert = (startedAt: string) =>
  database.query(
    `INSERT INTO request_log (started_at, id, team_id, key_id, provider, method, streamed, outcome, prompt_tokens)
     VALUES ($1, gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'p', 'POST', false, 'completed', 5)`,
    [startedAt],
  );
const all = () => database.query('SELECT * FROM request_log ORDER BY id');
const byTable = async () =>
  Object.fromEntries(
    (
      await database.query<{ table: string; count: number }>(
        'SELECT tableoid::regclass::text AS table, count(*)::int AS count FROM request_log GROUP BY 1 ORDER BY 1',
      )
    ).map(({ table, count }) => [table, count]),
  );
const partitions = async () =>
  (
    await database.query<{ name: string }>(
      "SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'request_log'::regclass ORDER BY 1",
    )
  ).map(({ name }) => name);

it('removes an empty default partition', async () => {
  await migrate(database.url);
  expect(await partitions()).toEqual([]);
});

it('gives every row of the default partition to its day, unchanged, and the views go on', async () => {
  for (const setting of ["timezone TO 'Pacific/Auckland'", "datestyle TO 'SQL, DMY'"]) {
    await database.query(`ALTER DATABASE ${new URL(database.url).pathname.slice(1)} SET ${setting}`);
  }
  await database.query(`
    CREATE TABLE request_log_20310102 PARTITION OF request_log FOR VALUES FROM ('2031-01-02Z') TO ('2031-01-03Z');
    CREATE TABLE by_hand PARTITION OF request_log FOR VALUES FROM ('2031-01-04 12:00Z') TO ('2031-01-05 12:00Z');
    CREATE TABLE request_log_20310101 AS SELECT 'an archive' AS precious`);
  for (const at of [
    '1970-01-01T00:00:00Z',
    '2031-01-01T00:00:00Z',
    '2031-01-01T23:59:59.999999Z',
    '2031-01-02T10:00:00Z',
    '2031-01-03T00:00:00Z',
    '2031-01-04T11:00:00Z',
    '2031-01-04T13:00:00Z',
    '2031-01-05T13:00:00Z',
    '2525-05-05T00:00:00Z',
  ]) {
    await insert(at);
  }
  const before = await all();
  const view = 'SELECT day, provider, calls, prompt_tokens FROM usage_by_model_day ORDER BY day';
  const usage = await database.query(view);
  await migrate(database.url);
  // Later migrations add columns.
  expect(await all()).toEqual(before.map((row) => expect.objectContaining(row) as unknown));
  expect(await database.query(view)).toEqual(usage);
  expect(await byTable()).toEqual({
    by_hand: 1,
    request_log_19700101: 1,
    request_log_20310101_1: 2,
    request_log_20310102: 1,
    request_log_20310103: 1,
    request_log_20310104: 1,
    request_log_20310105: 1,
    request_log_25250505: 1,
  });
  expect(await database.query("SELECT to_regclass('request_log_default') AS gone")).toEqual([{ gone: null }]);
  await expect(insert('2031-01-06Z')).rejects.toMatchObject({ code: '23514' });
});

it('is reverted to a default partition, with rows in the days', async () => {
  await migrate(database.url);
  await insertRow(database, new Date('2031-01-01Z'));
  await dataSource.destroy();
  dataSource = new DataSource(
    dataSourceOptions(database.url, { applicationName: 'postern-test', poolSize: 1 }),
  );
  await dataSource.initialize();
  const later = MIGRATIONS.slice(MIGRATIONS.findIndex(({ name }) => name.startsWith('NoDefaultPartition')));
  for (const _ of later) await dataSource.undoLastMigration();
  await insert('2031-01-06Z');
  expect(await byTable()).toEqual({ request_log_20310101: 1, request_log_default: 1 });
});

it('leaves a log alone whose default partition was removed by hand', async () => {
  await database.query('DROP TABLE request_log_default');
  await migrate(database.url);
  expect(await partitions()).toEqual([]);
});
