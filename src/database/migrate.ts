import { setTimeout as sleep } from 'node:timers/promises';
import type { ClientBase, ClientConfig, QueryConfig } from 'pg';
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
/** The lock is asked for this often, and a server that does not answer the question for so long is taken for dead. */
const LOCK_PAUSE_MS = 250;
const LOCK_ANSWER_MS = 2_000;

/**
 * Brings the schema up to date. Replicas that start together wait for each other and find nothing left to do.
 *
 * @param url connection string of a direct or session-mode connection: the lock is the session's
 * @param stopping ends the wait for another replica
 * @returns names of the migrations that ran
 * @throws DatabaseFault when the server is too old
 */
export async function migrate(url: string, stopping?: AbortSignal): Promise<string[]> {
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
      await takeLock((await runner.connect()) as ClientBase, stopping);
      await runner.query(`SET lock_timeout = '${LOCK_TIMEOUT}'`);
      return await runPending(dataSource, runner);
    } finally {
      await runner.release();
    }
  });
}

/**
 * Asks again and again rather than wait in Postgres: a connection that dies silently while it waits would wait for ever,
 * and the snapshot that a waiting statement holds would keep a CREATE INDEX CONCURRENTLY of the other from its end.
 */
async function takeLock(client: ClientBase, stopping: AbortSignal | undefined): Promise<void> {
  const question: QueryConfig & Pick<ClientConfig, 'query_timeout'> = {
    text: 'SELECT pg_try_advisory_lock($1) AS taken',
    values: [ADVISORY_LOCKS.migrations],
    query_timeout: LOCK_ANSWER_MS,
  };
  while (!(await client.query<{ taken: boolean }>(question)).rows[0]!.taken) {
    await sleep(LOCK_PAUSE_MS, undefined, { signal: stopping });
  }
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
