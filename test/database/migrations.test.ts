import { DataSource } from 'typeorm';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { FUNCTIONS } from '../../src/database/functions.js';
import { migrate } from '../../src/database/migrate.js';
import { MIGRATIONS } from '../../src/database/migrations.js';
import { COLUMN_NAMES, describeColumn } from '../../src/request-log/columns.js';
import { createDatabase, type TestDatabase } from '../support/database.js';

let database: TestDatabase;
beforeEach(async () => {
  database = await createDatabase({ empty: true });
});
afterEach(() => database.drop());

/** Everything that a migration can make, in words. */
async function schema(): Promise<string[]> {
  const rows = await database.query<{ what: string }>(`
    SELECT format('%s.%s %s %s %s', table_name, column_name, data_type, column_default, is_nullable) AS what
      FROM information_schema.columns WHERE table_schema = 'public'
    UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL SELECT format('%s %s', conname, pg_get_constraintdef(oid)) FROM pg_constraint
      WHERE connamespace = 'public'::regnamespace AND conrelid <> to_regclass('migrations')
    UNION ALL SELECT format('%s %s', viewname, definition) FROM pg_views WHERE schemaname = 'public'
    UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    ORDER BY 1`);
  return rows.map(({ what }) => what);
}

describe('the migrations', () => {
  it('run once: a second run changes nothing', async () => {
    expect(await migrate(database.url)).toHaveLength(MIGRATIONS.length + FUNCTIONS.length);
    const made = await schema();
    expect(made.length).toBeGreaterThan(50);
    expect(await migrate(database.url)).toEqual([]);
    expect(await schema()).toEqual(made);
  });

  it('comment on every table and view, and on every column of the request log', async () => {
    await migrate(database.url);
    const tables = await database.query<{ name: string; about: string | null }>(`
      SELECT relname AS name, obj_description(oid, 'pg_class') AS about FROM pg_class
      WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v') AND NOT relispartition
        AND relname <> 'migrations'`);
    expect(tables.length).toBeGreaterThan(10);
    expect(tables.filter(({ about }) => about === null)).toEqual([]);
    const columns = await database.query<{ name: string; about: string | null }>(`
      SELECT attname AS name, col_description(attrelid, attnum) AS about FROM pg_attribute
      WHERE attrelid = 'request_log'::regclass AND attnum > 0 AND NOT attisdropped`);
    // A migration that adds a column calls commentOnRequestLog().
    expect(Object.fromEntries(columns.map(({ name, about }) => [name, about]))).toEqual(
      Object.fromEntries(COLUMN_NAMES.map((name) => [name, describeColumn(name)])),
    );
  });

  it('have an index for each foreign key whose rows go with the row that they name', async () => {
    await migrate(database.url);
    const keys = `
      SELECT conname AS name, conrelid, conkey FROM pg_constraint
      WHERE contype = 'f' AND confdeltype IN ('c', 'n') AND connamespace = 'public'::regnamespace`;
    expect((await database.query(keys)).length).toBeGreaterThan(5);
    // Without one, each deleted row reads the whole table.
    const without = await database.query<{ name: string }>(`
      SELECT c.name FROM (${keys}) c
      WHERE NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.conrelid AND i.indkey[0] = c.conkey[1])`);
    expect(without).toEqual([]);
  });

  it('run once for replicas that start together', async () => {
    const ran = await Promise.all([1, 2, 3].map(() => migrate(database.url)));
    expect(ran.flat()).toHaveLength(MIGRATIONS.length + FUNCTIONS.length);
  });

  it('can be reverted one by one to nothing, and run again to the same', async () => {
    await migrate(database.url);
    const made = await schema();
    const dataSource = new DataSource(
      dataSourceOptions(database.url, { applicationName: 'postern-test', poolSize: 1 }),
    );
    await dataSource.initialize();
    for (const _ of MIGRATIONS) await dataSource.undoLastMigration();
    await dataSource.destroy();
    expect((await schema()).filter((what) => !what.includes('migrations'))).toEqual([]);
    await migrate(database.url);
    expect(await schema()).toEqual(made);
  });
});
