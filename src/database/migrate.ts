import { setTimeout as sleep } from 'node:timers/promises';
import type { ClientBase, ClientConfig, QueryConfig } from 'pg';
import { DataSource, type DataSourceOptions, MigrationExecutor, type QueryRunner } from 'typeorm';
import type { Feature } from '../config/features.js';
import { ADVISORY_LOCKS } from './advisory-locks.js';
import { dataSourceOptions } from './data-source-options.js';
import { applyFunctions, pendingFunctions } from './functions.js';
import { PermanentDatabaseError } from './permanent-database-error.js';
import { isDatabaseUnavailable } from './sql-state.js';
import { patience } from '../platform/patience.js';

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
/** Of one migration. */
const TRIES = 60;
/** How often the lock is polled, and how long the server may take to respond. */
const LOCK_PAUSE_MS = 250;
const LOCK_QUERY_TIMEOUT = patience('the lock of migrations', 2_000);

/**
 * Brings the schema up to date: runs the migrations, applies the files of the functions, then runs the migrations of
 * modules. Replicas that start at the same time wait for each other.
 *
 * @param url connection string of a direct or session-mode connection: the lock is the session's
 * @param features of modules, whose migrations are recorded in a table each
 * @param stopping ends the wait for another replica
 * @returns names of the migrations that ran, those of modules as `quotas/AddQuotas1795000099000`, and of the functions that
 *   were applied, as `limit_sweep()`
 * @throws PermanentDatabaseError if the server is too old
 */
export async function migrate(
  url: string,
  features: readonly Feature[] = [],
  stopping?: AbortSignal,
): Promise<string[]> {
  return withDataSource(url, {}, async (dataSource) => {
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
      const ran = await runPending(dataSource, runner);
      ran.push(...(await retried(() => applyFunctions(runner))).map((name) => `${name}()`));
      // This connection holds the lock meanwhile.
      for (const feature of features) ran.push(...(await migrateFeature(url, feature)));
      return ran;
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
    query_timeout: LOCK_QUERY_TIMEOUT.ms,
  };
  while (!(await client.query<{ taken: boolean }>(query)).rows[0]!.taken) {
    await sleep(LOCK_PAUSE_MS, undefined, { signal: stopping });
  }
}

/** Runs each migration in its own transaction. @returns the names of those that ran */
async function runPending(dataSource: DataSource, runner: QueryRunner): Promise<string[]> {
  await runner.query(`SET lock_timeout = '${LOCK_TIMEOUT}'`);
  await runner.query(`SET idle_in_transaction_session_timeout = '${IDLE_TIMEOUT}'`);
  const executor = new MigrationExecutor(dataSource, runner);
  executor.transaction = 'each';
  const pending = (await executor.getPendingMigrations()).map(({ name }) => name);
  // What runs outside a transaction may be half done.
  const isWhole = (await executor.getPendingMigrations()).every(({ transaction }) => transaction !== false);
  const run = () => executor.executePendingMigrations();
  const left = async () => (await executor.getPendingMigrations()).length;
  await (isWhole ? retried(run, left) : run());
  return pending;
}

/**
 * Runs what timed out on a lock again.
 *
 * @param left counts the steps that are left of the work: each step has all tries
 */
async function retried<T>(work: () => Promise<T>, left = () => Promise.resolve(1)): Promise<T> {
  let fewest = Infinity;
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if ((error as { code?: string }).code !== LOCK_TIMED_OUT) throw error;
      const now = await left();
      if (now < fewest) tries = 1;
      fewest = now;
      if (tries === TRIES) throw error;
      await sleep(PAUSE_MS);
    }
  }
}

/** Runs the migrations of a module, on a connection of their own: TypeORM knows one table of migrations for each. */
async function migrateFeature(url: string, feature: Feature): Promise<string[]> {
  const { name, migrations = [] } = feature;
  if (migrations.length === 0) return [];
  return withDataSource(url, optionsOf(feature), async (dataSource) => {
    const runner = dataSource.createQueryRunner();
    try {
      return (await runPending(dataSource, runner)).map((migration) => `${name}/${migration}`);
    } catch (error) {
      if (!isDatabaseUnavailable(error))
        (error as Error).message = `migrations of the module ${name}: ${(error as Error).message}`;
      throw error;
    } finally {
      await runner.release();
    }
  });
}

function optionsOf({ name, migrations = [] }: Feature): Partial<DataSourceOptions> {
  return { migrations: [...migrations], migrationsTableName: `migration_${name}` };
}

/** True when a migration has not run yet, or the file of a function was not applied. */
export async function isMigrationPending(url: string, features: readonly Feature[] = []): Promise<boolean> {
  const isPending = await withDataSource(
    url,
    {},
    async (dataSource) =>
      (await dataSource.showMigrations()) || (await pendingFunctions(dataSource)).length > 0,
  );
  if (isPending) return true;
  for (const feature of features) if (await isFeaturePending(url, feature)) return true;
  return false;
}

async function isFeaturePending(url: string, feature: Feature): Promise<boolean> {
  if (feature.migrations === undefined || feature.migrations.length === 0) return false;
  return withDataSource(url, optionsOf(feature), async (dataSource) => {
    // Creates no table, unlike showMigrations(): with MIGRATE=off the gateway's role may have no right to.
    const pending = await new MigrationExecutor(dataSource).getPendingMigrations();
    return pending.length > 0;
  });
}

async function withDataSource<T>(
  url: string,
  options: Partial<DataSourceOptions>,
  work: (dataSource: DataSource) => Promise<T>,
): Promise<T> {
  // Closing its one connection releases the lock whatever happened.
  const dataSource = new DataSource({
    ...dataSourceOptions(url, { applicationName: 'postern-migrate', poolSize: 1 }),
    ...options,
  } as DataSourceOptions);
  await dataSource.initialize();
  try {
    return await work(dataSource);
  } finally {
    await dataSource.destroy();
  }
}
