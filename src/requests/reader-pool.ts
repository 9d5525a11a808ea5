import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import pg from 'pg';
import type { Scope } from '../admin/access/access.js';
import { InjectSettings } from '../config/config.module.js';
import { directUrl, type Settings } from '../config/settings.js';
import { openPool } from '../database/open-pool.js';
import { CLOSE_TIMEOUT, patience, withTimeout } from '../platform/patience.js';

/** A page of the console asks several questions at once: the later ones wait until the others are answered. */
const PATIENT = {
  queryTimeout: patience('a query of the admin API', 30_000),
  wait: patience('a connection for a query', 60_000),
};
/** Queries of the admin API. */
const QUERIES = { applicationName: 'postern-reader', poolSize: 2, ...PATIENT };
/** Queries of members of teams (role `team`). Administrators and viewers never wait for these. */
const MEMBERS = { applicationName: 'postern-members', poolSize: 2, ...PATIENT };
/** Queries of holders of gateway keys. Administrators never wait for these. */
const SELF = {
  applicationName: 'postern-self',
  poolSize: 2,
  queryTimeout: patience('a query of a key', 5_000),
};
/** Exports: one step, above all the first, may have to scan the partitions of all days. */
const EXPORTS = {
  applicationName: 'postern-export',
  poolSize: 6,
  queryTimeout: patience('a query of an export', 600_000),
};
/** Usage is added up in hash tables. With the 4 MB of a default Postgres, it expects them to be too large, and sorts. */
const WORK_MEM = '32MB';

/** Connections for reading the request log, separate from the others so that a slow query cannot delay key look-ups. */
@Injectable()
export class ReaderPool implements OnApplicationShutdown {
  readonly queries: pg.Pool;
  private readonly members: pg.Pool;
  readonly self: pg.Pool;
  readonly exports: pg.Pool;

  constructor(@InjectSettings() env: Settings) {
    const logger = new Logger('RequestLog');
    this.queries = openPool(directUrl(env), QUERIES, logger);
    this.members = openPool(directUrl(env), MEMBERS, logger);
    this.self = openPool(directUrl(env), SELF, logger);
    this.exports = openPool(directUrl(env), EXPORTS, logger);
  }

  /** @param scope IDs of the teams whose rows the user may see; null or absent: all */
  of(scope: Scope | undefined): pg.Pool {
    return scope ? this.members : this.queries;
  }

  async onApplicationShutdown(): Promise<void> {
    const pools = [this.queries, this.members, this.self, this.exports];
    await withTimeout(CLOSE_TIMEOUT.ms, Promise.all(pools.map((pool) => pool.end())));
  }
}

/** Runs queries that read the same state of the database. */
export async function inSnapshot<T>(pool: pg.Pool, read: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL work_mem = '${WORK_MEM}'`);
    const result = await read(client);
    await client.query('COMMIT');
    client.release();
    return result;
  } catch (error) {
    // An error that Postgres reported leaves the connection as it was.
    const isUsable =
      error instanceof pg.DatabaseError &&
      (await client.query('ROLLBACK').then(
        () => true,
        () => false,
      ));
    client.release(!isUsable);
    throw error;
  }
}
