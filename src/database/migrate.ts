import { setTimeout as sleep } from 'node:timers/promises';
import { DataSource, MigrationExecutor, type QueryRunner } from 'typeorm';
import { ADVISORY_LOCKS } from './advisory-locks.js';
import { dataSourceOptions } from './data-source-options.js';
import { DatabaseFault } from './database-fault.js';

const OLDEST_SERVER = 150_000;
/**
 * How long a change of a table may wait for those who use it: everybody else who wants the table, even to look up a key,
 * stands in line behind it. A report that runs for minutes must not stop the calls. Shorter than Postgres's deadlock_timeout
 * (1 s): where the two wait for each other it is the migration that gives way, not the look-up.
 */
const LOCK_TIMEOUT = '500ms';
const PAUSE_MS = 1_000;
/** lock_not_available */
const LOCK_TIMED_OUT = '55P03';
const TRIES = 60;

/**
 * Brings the schema up to date. Replicas that start together wait for each other and find nothing left to do.
 *
 * @param url connection string of a direct or session-mode connection: the lock is the session's
 * @returns names of the migrations that ran
 * @throws DatabaseFault when the server is too old
 */
export async function migrate(url: string): Promise<string[]> {
  return withDataSource(url, async (dataSource) => {
    const runner = dataSource.createQueryRunner();
    try {
      const [server] = (await runner.query(
        "SELECT current_setting('server_version_num')::int AS version",
      )) as [{ version: number }];
      if (server.version < OLDEST_SERVER) {
        throw new DatabaseFault(
          `Postgres 15 or newer is needed; this one is ${Math.floor(server.version / 10_000)}.`,
        );
      }
      await runner.query('SELECT pg_advisory_lock($1)', [ADVISORY_LOCKS.migrations]);
      await runner.query(`SET lock_timeout = '${LOCK_TIMEOUT}'`);
      return await runPending(dataSource, runner);
    } finally {
      await runner.release();
    }
  });
}

/** Each migration in a transaction of its own; one that had to wait too long is begun again. */
async function runPending(dataSource: DataSource, runner: QueryRunner): Promise<string[]> {
  const executor = new MigrationExecutor(dataSource, runner);
  executor.transaction = 'each';
  const pending = (await executor.getPendingMigrations()).map(({ name }) => name);
  for (let tries = 1; ; tries++) {
    try {
      await executor.executePendingMigrations();
      return pending;
    } catch (error) {
      if ((error as { code?: string }).code !== LOCK_TIMED_OUT || tries === TRIES) throw error;
      await sleep(PAUSE_MS);
    }
  }
}

/** True when a migration has not run yet. */
export async function isMigrationPending(url: string): Promise<boolean> {
  return withDataSource(url, (dataSource) => dataSource.showMigrations());
}

async function withDataSource<T>(url: string, work: (dataSource: DataSource) => Promise<T>): Promise<T> {
  // Closing its one connection releases the lock whatever happened.
  const dataSource = new DataSource(
    dataSourceOptions(url, { applicationName: 'postern-migrate', poolSize: 1 }),
  );
  await dataSource.initialize();
  try {
    return await work(dataSource);
  } finally {
    await dataSource.destroy();
  }
}
