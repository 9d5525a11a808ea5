import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import type pg from 'pg';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { openPool } from '../database/open-pool.js';
import { GOODBYE_MS, withTimeout } from '../platform/with-timeout.js';

/** Questions that are answered at once. */
const QUERIES = { applicationName: 'postern-reader', poolSize: 2, queryTimeoutMs: 30_000 };
/** Exports: one step of theirs, the first above all, may have to look through every day there is. */
const EXPORTS = { applicationName: 'postern-export', poolSize: 2, queryTimeoutMs: 600_000 };
/** An export whose client takes nothing for so long is ended: it holds a snapshot and locks. */
const EXPORT_IDLE_MS = 900_000;

/** Connections for reading the request log, apart from others: a slow question must not keep key look-ups waiting. */
@Injectable()
export class ReaderPool implements OnApplicationShutdown {
  readonly queries: pg.Pool;
  readonly exports: pg.Pool;

  constructor(@InjectSettings() env: Settings) {
    const logger = new Logger('RequestLog');
    this.queries = openPool(env.databaseUrl, QUERIES, logger);
    this.exports = openPool(env.databaseUrl, EXPORTS, logger, {
      idle_in_transaction_session_timeout: EXPORT_IDLE_MS,
    });
  }

  async onApplicationShutdown(): Promise<void> {
    await withTimeout(GOODBYE_MS, Promise.all([this.queries.end(), this.exports.end()]));
  }
}
