import { DataSource } from 'typeorm';
import { dataSourceOptions } from './data-source-options.js';
import { DatabaseFault } from './database-fault.js';

/** Any number, the same in every replica: the advisory lock under which the schema is changed. */
const MIGRATION_LOCK = 7_061_001;
const OLDEST_SERVER = 150_000;

/**
 * Brings the schema up to date. Replicas that start together wait for each other and find nothing left to do.
 *
 * @param url connection string of a direct or session-mode connection: the lock is the session's
 * @returns names of the migrations that ran
 * @throws DatabaseFault when the server is too old
 */
export async function migrate(url: string): Promise<string[]> {
  return withDataSource(url, async (dataSource) => {
    const lock = dataSource.createQueryRunner();
    try {
      const [server] = (await lock.query("SELECT current_setting('server_version_num')::int AS version")) as [
        { version: number },
      ];
      if (server.version < OLDEST_SERVER) {
        throw new DatabaseFault(
          `Postgres 15 or newer is needed; this one is ${Math.floor(server.version / 10_000)}.`,
        );
      }
      await lock.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
      const done = await dataSource.runMigrations();
      return done.map((migration) => migration.name);
    } finally {
      await lock.release();
    }
  });
}

/** True when a migration has not run yet. */
export async function isMigrationPending(url: string): Promise<boolean> {
  return withDataSource(url, (dataSource) => dataSource.showMigrations());
}

async function withDataSource<T>(url: string, work: (dataSource: DataSource) => Promise<T>): Promise<T> {
  // Two connections: one holds the lock, the other migrates. Closing them releases the lock whatever happened.
  const dataSource = new DataSource(
    dataSourceOptions(url, { applicationName: 'postern-migrate', poolSize: 2 }),
  );
  await dataSource.initialize();
  try {
    return await work(dataSource);
  } finally {
    await dataSource.destroy();
  }
}
