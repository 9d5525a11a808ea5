import type { DataSourceOptions } from 'typeorm';
import { MIGRATIONS } from './migrations.js';
import { SteadyClient } from './steady-client.js';

export interface Purpose {
  /** Shown in pg_stat_activity. */
  applicationName: string;
  /** Connections of this pool. */
  poolSize: number;
  /** Milliseconds after which a query is given up, on the server and here; none for migrations. */
  queryTimeoutMs?: number;
}

/**
 * A peer that is gone without a word (its machine lost power, a firewall forgot the connection) is noticed within half
 * a minute also by who only waits: Node probes each second from then on, ten times.
 */
const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: 10_000 };

type PostgresOptions = Extract<DataSourceOptions, { type: 'postgres' }>;

/** The one description of how Postgres is reached, for the app, the CLI and the migrations. */
export function dataSourceOptions(url: string, purpose: Purpose): PostgresOptions {
  return {
    type: 'postgres',
    url,
    applicationName: purpose.applicationName,
    poolSize: purpose.poolSize,
    connectTimeoutMS: 5_000,
    migrations: MIGRATIONS,
    migrationsTransactionMode: 'each',
    synchronize: false,
    // Ids are made here (a Postgres 15 has no uuidv7()), so no extension is asked for.
    uuidExtension: 'pgcrypto',
    installExtensions: false,
    logging: false,
    extra: {
      Client: SteadyClient,
      ...KEEP_ALIVE,
      statement_timeout: purpose.queryTimeoutMs,
      query_timeout: purpose.queryTimeoutMs && purpose.queryTimeoutMs + 1_000,
    },
  };
}

/** The same for a bare `pg` client, for what needs a connection of its own. */
export function clientOptions(url: string, purpose: Omit<Purpose, 'poolSize'>): object {
  return {
    connectionString: url,
    application_name: purpose.applicationName,
    connectionTimeoutMillis: 5_000,
    ...KEEP_ALIVE,
    statement_timeout: purpose.queryTimeoutMs,
    query_timeout: purpose.queryTimeoutMs && purpose.queryTimeoutMs + 1_000,
  };
}
