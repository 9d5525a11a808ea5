import pg from 'pg';
import { ModulesContainer } from '@nestjs/core';
import { DataSource } from 'typeorm';
import type { Settings } from '../../src/config/settings.js';
import { ADVISORY_LOCKS } from '../../src/database/advisory-locks.js';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { DatabaseService } from '../../src/database/database.service.js';
import { migrate } from '../../src/database/migrate.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { PostgresRelay } from '../support/postgres-relay.js';
import { setPatience } from '../support/patience.js';

let database: TestDatabase;
let relay: PostgresRelay;
/** Another replica, in the midst of a migration. */
let other: pg.Client;

beforeEach(async () => {
  database = await createDatabase();
  relay = await PostgresRelay.to(database.url);
  other = new pg.Client({ connectionString: database.url });
  await other.connect();
  await other.query('SELECT pg_advisory_lock($1)', [ADVISORY_LOCKS.migrations]);
});
afterEach(async () => {
  await other.end();
  await relay.close();
  await database.drop();
});

const asking = async () => {
  const rows = await database.query(
    `SELECT FROM pg_stat_activity
     WHERE application_name = 'postern-migrate' AND datname = current_database() AND query LIKE '%advisory%'`,
  );
  return rows.length > 0;
};

it('is not waited for on a connection that has fallen silent', async () => {
  const restore = setPatience(0.5, 'the lock of migrations');
  const migrated = migrate(relay.url);
  await eventually(asking);
  relay.set('*', 'frozen');
  await expect(migrated).rejects.toThrow('Query read timeout');
  restore();
});

describe('while another replica holds it', () => {
  let dataSource: DataSource;
  let service: DatabaseService;
  beforeEach(() => {
    const env = { databaseUrl: database.url, migrate: true } as Settings;
    dataSource = new DataSource(dataSourceOptions(database.url, { applicationName: 'postern', poolSize: 1 }));
    service = new DatabaseService(dataSource, env, new ModulesContainer());
  });
  afterEach(async () => {
    service.onModuleDestroy();
    if (dataSource.isInitialized) await dataSource.destroy();
  });

  it('a start goes on without Postgres, and with it as soon as the other is done', async () => {
    let hooks = 0;
    service.whenReady(() => Promise.resolve(void hooks++));
    await service.start(50);
    expect([service.notReady, hooks]).toEqual([expect.stringContaining('is migrating it'), 0]);
    await other.query('SELECT pg_advisory_unlock_all()');
    await eventually(() => service.notReady === null);
    expect(hooks).toBe(1);
  });

  it('a process that is stopped waits no longer', async () => {
    await service.start(50);
    await eventually(asking);
    service.onModuleDestroy();
    await eventually(async () => !(await asking()));
  });
});
