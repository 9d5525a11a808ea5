import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import type pg from 'pg';
import { DataSource } from 'typeorm';
import { InjectSettings } from '../config/config.module.js';
import { directUrl, type Settings } from '../config/settings.js';
import { ADVISORY_LOCKS } from '../database/advisory-locks.js';
import { DatabaseService } from '../database/database.service.js';
import { openPool } from '../database/open-pool.js';
import { describeError } from '../errors/describe-error.js';
import { CLOSE_TIMEOUT, patience, withTimeout } from '../platform/patience.js';
import { Regressions } from '../regressions/regressions.service.js';
import { OutageLog } from '../request-log/writer/outage-log.js';
import { ConsumerLeader } from './consumer-leader.js';
import { latestGiven, progressOf } from './consumer-progress.js';
import { LogConsumers, type RegisteredConsumer } from './log-consumers.js';

const EVERY_MS = 2_000;
/** Reading a batch of a long log may have to scan a day of it. */
const QUERY_TIMEOUT = patience('rows for a consumer', 300_000);

const LOCK = `SELECT pg_try_advisory_lock(${ADVISORY_LOCKS.consumers}, hashtext($1)) AS locked`;

/** Gives rows to the consumers of which this process gets the lock: one process for each consumer. */
@Injectable()
export class ConsumerRunner implements OnModuleDestroy {
  private readonly logger = new Logger('LogConsumers');
  private readonly outage = new OutageLog(this.logger);
  /** One connection for each consumer, opened with the first one. */
  private pool: pg.Pool | null = null;
  private readonly running = new Map<string, Promise<void>>();
  private readonly stop = new AbortController();

  constructor(
    private readonly consumers: LogConsumers,
    private readonly dataSource: DataSource,
    private readonly database: DatabaseService,
    @InjectSettings() private readonly env: Settings,
    regressions: Regressions,
  ) {
    regressions.cursors.add('a consumer', latestGiven);
    database.whenReady(() => this.begin());
  }

  @Interval(EVERY_MS)
  onInterval(): void {
    if (this.env.worker !== 1 || this.database.notReady !== null || this.stop.signal.aborted) return;
    for (const one of this.consumers.all) if (!this.running.has(one.name)) this.start(one);
  }

  /** While the data source is still connected. */
  async onModuleDestroy(): Promise<void> {
    this.stop.abort();
    // A transaction that is cut off is rolled back, and its rows come again.
    await withTimeout(CLOSE_TIMEOUT.ms, Promise.all(this.running.values()));
    if (this.pool !== null) await withTimeout(CLOSE_TIMEOUT.ms, this.pool.end());
  }

  /** A consumer that begins now gets every call after the start. */
  private async begin(): Promise<void> {
    const { all } = this.consumers;
    if (all.length === 0) return;
    const purpose = { applicationName: 'postern-consumers', queryTimeout: QUERY_TIMEOUT };
    this.pool ??= openPool(directUrl(this.env), { ...purpose, poolSize: all.length }, this.logger);
    for (const { name, consumer } of all) await progressOf(this.pool, name, consumer);
  }

  private start(one: RegisteredConsumer): void {
    const run = this.lead(one)
      .catch((error: unknown) => {
        if (!this.stop.signal.aborted)
          this.outage.report(`The consumer "${one.name}" cannot get rows`, describeError(error));
      })
      .finally(() => this.running.delete(one.name));
    this.running.set(one.name, run);
  }

  /** Resolves at once if another process has the lock, else when this process ends. */
  private async lead(one: RegisteredConsumer): Promise<void> {
    const client = await this.pool!.connect();
    let isLeader = false;
    try {
      isLeader = (await client.query<{ locked: boolean }>(LOCK, [one.name])).rows[0]!.locked;
      if (!isLeader) return;
      await new ConsumerLeader(client, one, this.dataSource, this.logger, this.stop.signal).run();
    } finally {
      // Closed, not returned to the pool: that releases the lock.
      client.release(isLeader);
    }
  }
}
