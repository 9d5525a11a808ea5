import { setTimeout as sleep } from 'node:timers/promises';
import type { ClientBase, ClientConfig, QueryConfig } from 'pg';
import { DataSource, MigrationExecutor, type QueryRunner } from 'typeorm';
import { ADVISORY_LOCKS } from './advisory-locks.js';
import { dataSourceOptions } from './data-source-options.js';
import { applyFunctions, pendingFunctions } from './functions.js';
import { PermanentDatabaseError } from './permanent-database-error.js';

const OLDEST_SERVER = 150_000;
/**
 * How long a schema change may wait for a table lock: every other query of the table, even a key look-up, queues behind
 * it. A report that runs for minutes must not stop the calls. Shorter than Postgres's deadlock_timeout (1 s): in a
 * deadlock, the migration fails, not the look-up.
 */
const LOCK_TIMEOUT = '500ms';
/** Modules of an operator's own may do slow work of their own between two statements of a migration. */
const IDLE_TIMEOUT = '1min';
const PAUSE_MS = 1_000;
/** lock_not_available */
const LOCK_TIMED_OUT = '55P03';
const TRIES = 60;
/** How often the lock is polled, and how long the server may take to respond. */
const LOCK_PAUSE_MS = 250;
const LOCK_QUERY_TIMEOUT_MS = 2_000;

/**
 * Brings the schema up to date: runs the migrations, then applies the files of the functions. Replicas that start at the
 * same time wait for each other.
 *
 * @param url connection string of a direct or session-mode connection: the lock is the session's
 * @param stopping ends the wait for another replica
 * @returns names of the migrations that ran, and of the functions that were applied, as `limit_sweep()`
 * @throws PermanentDatabaseError if the server is too old
 */
export async function migrate(url: string, stopping?: AbortSignal): Promise<string[]> {
  return withDataSource(url, async (dataSource) => {
    const runner = dataSource.createQueryRunner();
    try {
      const [server] = (await runner.query(
        "SELECT current_setting('server_version_num')::int AS version",
      )) as [{ version: number }];
      if (server.version < OLDEST_SERVER) {
        throw new PermanentDatabaseError(
          `Postgres 15 or newer is needed; this one is ${Math.floor(server.version / 10_000)}.`,
        );
      }
      await takeLock((await runner.connect()) as ClientBase, stopping);
      await runner.query(`SET lock_timeout = '${LOCK_TIMEOUT}'`);
      await runner.query(`SET idle_in_transaction_session_timeout = '${IDLE_TIMEOUT}'`);
      return await runPending(dataSource, runner);
    } finally {
      await runner.release();
    }
  });
}

/**
 * Polls for the lock instead of waiting in Postgres: on a connection that died silently the wait would never end, and
 * the snapshot of a waiting statement would block a CREATE INDEX CONCURRENTLY of the other process.
 */
async function takeLock(client: ClientBase, stopping: AbortSignal | undefined): Promise<void> {
  const query: QueryConfig & Pick<ClientConfig, 'query_timeout'> = {
    text: 'SELECT pg_try_advisory_lock($1) AS taken',
    values: [ADVISORY_LOCKS.migrations],
    query_timeout: LOCK_QUERY_TIMEOUT_MS,
  };
  while (!(await client.query<{ taken: boolean }>(query)).rows[0]!.taken) {
    await sleep(LOCK_PAUSE_MS, undefined, { signal: stopping });
  }
}

/** Runs each migration in its own transaction; one that timed out on a lock is retried. */
async function runPending(dataSource: DataSource, runner: QueryRunner): Promise<string[]> {
  const executor = new MigrationExecutor(dataSource, runner);
  executor.transaction = 'each';
  const pending = (await executor.getPendingMigrations()).map(({ name }) => name);
  for (let tries = 1; ; tries++) {
    try {
      await executor.executePendingMigrations();
      return [...pending, ...(await applyFunctions(runner)).map((name) => `${name}()`)];
    } catch (error) {
      if ((error as { code?: string }).code !== LOCK_TIMED_OUT || tries === TRIES) throw error;
      await sleep(PAUSE_MS);
    }
  }
}

/** True when a migration has not run yet, or the file of a function was not applied. */
export async function isMigrationPending(url: string): Promise<boolean> {
  return withDataSource(
    url,
    async (dataSource) =>
      (await dataSource.showMigrations()) || (await pendingFunctions(dataSource)).length > 0,
  );
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
