import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import type pg from 'pg';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { openPool } from '../database/open-pool.js';
import { GOODBYE_MS, withTimeout } from '../platform/with-timeout.js';

/** Queries of the admin API. */
const QUERIES = { applicationName: 'postern-reader', poolSize: 2, queryTimeoutMs: 30_000 };
/** Exports: one step, above all the first, may have to scan the partitions of all days. */
const EXPORTS = { applicationName: 'postern-export', poolSize: 2, queryTimeoutMs: 600_000 };

/** Connections for reading the request log, separate from the others so that a slow query cannot delay key look-ups. */
@Injectable()
export class ReaderPool implements OnApplicationShutdown {
  readonly queries: pg.Pool;
  readonly exports: pg.Pool;

  constructor(@InjectSettings() env: Settings) {
    const logger = new Logger('RequestLog');
    this.queries = openPool(env.databaseUrl, QUERIES, logger);
    this.exports = openPool(env.databaseUrl, EXPORTS, logger);
  }

  async onApplicationShutdown(): Promise<void> {
    await withTimeout(GOODBYE_MS, Promise.all([this.queries.end(), this.exports.end()]));
  }
}
