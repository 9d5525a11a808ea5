import pg from 'pg';
import type { DataSourceOptions } from 'typeorm';
import { GatewayClient } from './gateway-client.js';
import { MIGRATIONS } from './migrations.js';
import { type Patience, patience } from '../platform/patience.js';

export interface Purpose {
  /** Shown in pg_stat_activity. */
  applicationName: string;
  /** Connections of this pool. */
  poolSize: number;
  /** After which a query is cancelled, on the server and here; none for migrations. */
  queryTimeout?: Patience;
  /** How long a query waits while others have all connections; as long as connecting may take if absent. */
  wait?: Patience;
}

const CONNECT = patience('a connection to Postgres', 5_000);

/**
 * A peer that vanished without closing the connection (power loss, a firewall that dropped it) is detected within half a
 * minute, also on an idle connection: after the delay, Node sends ten probes, one per second.
 */
const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: 10_000 };

function timeouts({ queryTimeout }: Pick<Purpose, 'queryTimeout'>): pg.ClientConfig {
  const ms = queryTimeout?.ms;
  return { statement_timeout: ms, query_timeout: ms && ms + 1_000 };
}

type PostgresOptions = Extract<DataSourceOptions, { type: 'postgres' }>;

/** TypeORM options for the gateway, the CLI and the migrations. */
export function dataSourceOptions(url: string, purpose: Purpose): PostgresOptions {
  return {
    type: 'postgres',
    // TypeORM would look for it by name, which finds another copy beside the bundle.
    driver: pg,
    url,
    applicationName: purpose.applicationName,
    poolSize: purpose.poolSize,
    connectTimeoutMS: CONNECT.ms,
    migrations: MIGRATIONS,
    migrationsTransactionMode: 'each',
    synchronize: false,
    // IDs are generated here (Postgres 15 has no uuidv7()), so no extension is needed.
    uuidExtension: 'pgcrypto',
    installExtensions: false,
    logging: false,
    extra: {
      Client: GatewayClient,
      ...KEEP_ALIVE,
      ...timeouts(purpose),
    },
  };
}

/** The same for a plain `pg` client with a connection of its own. */
export function clientOptions(url: string, purpose: Omit<Purpose, 'poolSize'>): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: purpose.applicationName,
    connectionTimeoutMillis: CONNECT.ms,
    ...KEEP_ALIVE,
    ...timeouts(purpose),
  };
}
