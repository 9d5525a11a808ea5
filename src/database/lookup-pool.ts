import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import type pg from 'pg';
import { CannotExecuteNotConnectedError, DataSource } from 'typeorm';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { CLOSE_TIMEOUT, patience, withTimeout } from '../platform/patience.js';
import { openPooled } from './open-pool.js';

/** A look-up that takes longer than this fails with 503. */
export const LOOKUP_TIMEOUT = patience('a look-up', 5_000);

/**
 * Connections for what calls wait for: keys, limits and prices. Everything else has other connections, so that nobody who
 * uses the admin API can delay a call.
 */
@Injectable()
export class LookupPool implements OnApplicationShutdown {
  private readonly pool: pg.Pool;

  constructor(
    @InjectSettings() env: Settings,
    private readonly dataSource: DataSource,
  ) {
    const purpose = {
      applicationName: 'postern-lookups',
      poolSize: env.databasePoolSize,
      queryTimeout: LOOKUP_TIMEOUT,
    };
    this.pool = openPooled(env, purpose, new Logger('Database'));
  }

  /** Connections, and queries that wait for one. */
  get counts(): { busy: number; idle: number; waiting: number } {
    const { totalCount, idleCount, waitingCount } = this.pool;
    return { busy: totalCount - idleCount, idle: idleCount, waiting: waitingCount };
  }

  /** @returns the rows @throws CannotExecuteNotConnectedError before the first start has found the schema up to date */
  async query<T>(text: string, values?: unknown[]): Promise<T> {
    if (!this.dataSource.isInitialized) throw new CannotExecuteNotConnectedError();
    return (await this.pool.query(text, values)).rows as T;
  }

  async onApplicationShutdown(): Promise<void> {
    await withTimeout(CLOSE_TIMEOUT.ms, this.pool.end());
  }
}
