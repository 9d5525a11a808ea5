import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import type pg from 'pg';
import { InjectSettings } from '../config/config.module.js';
import { directUrl, type Settings } from '../config/settings.js';
import { ADVISORY_LOCKS } from '../database/advisory-locks.js';
import { DatabaseService } from '../database/database.service.js';
import { openPool } from '../database/open-pool.js';
import { describeError } from '../errors/describe-error.js';
import { CLOSE_TIMEOUT, patience, withTimeout } from '../platform/patience.js';
import { OutageLog } from '../request-log/writer/outage-log.js';
import { Regressions } from '../regressions/regressions.service.js';
import { SinkSenders } from './senders/open-sender.js';
import { type SinkCounts, SinkLeader } from './sink-leader.js';
import { latestSent } from './sink-progress.js';
import { PREPARE } from './sink-rows.js';
import { SinkSecrets } from './sink-secrets.service.js';
import { SinkStates } from './sink-states.service.js';

const EVERY_MS = 2_000;
/** One connection for each sink that this process sends to. Reading a batch of a long log may have to scan a day of it. */
const POOL = {
  applicationName: 'postern-sinks',
  poolSize: 10,
  queryTimeout: patience('rows for a sink', 300_000),
};

const LOCK = `SELECT pg_try_advisory_lock(${ADVISORY_LOCKS.sinks}, hashtext($1)) AS locked`;

/** Sends rows to the sinks of which this process gets the lock: one process for each sink. */
@Injectable()
export class SinkRunner implements OnApplicationShutdown {
  /** By name of the sink, since the start of this process. */
  readonly counts = new Map<string, SinkCounts>();
  private readonly logger = new Logger('Sinks');
  private readonly outage = new OutageLog(this.logger);
  private readonly pool: pg.Pool;
  /** What is in progress, by ID of the sink. */
  private readonly running = new Map<string, Promise<void>>();
  private readonly stop = new AbortController();

  constructor(
    @InjectSettings() private readonly env: Settings,
    private readonly database: DatabaseService,
    private readonly states: SinkStates,
    private readonly senders: SinkSenders,
    private readonly secrets: SinkSecrets,
    regressions: Regressions,
  ) {
    regressions.cursors.add('a sink', latestSent);
    this.pool = openPool(directUrl(env), POOL, this.logger);
  }

  @Interval(EVERY_MS)
  async onInterval(): Promise<void> {
    if (this.env.worker !== 1 || this.database.notReady !== null || this.stop.signal.aborted) return;
    await this.states.refresh();
    for (const { id, name, enabled } of this.states.all)
      if (enabled && !this.running.has(id)) this.start(id, name);
  }

  async onApplicationShutdown(): Promise<void> {
    this.stop.abort();
    // A batch that is cut off is sent again, under the same token.
    await withTimeout(CLOSE_TIMEOUT.ms, Promise.all(this.running.values()));
    await withTimeout(CLOSE_TIMEOUT.ms, this.pool.end());
  }

  private start(id: string, name: string): void {
    const run = this.lead(id, name)
      .catch((error: unknown) => {
        if (!this.stop.signal.aborted)
          this.outage.report(`Rows could not be sent to the sink ${name}`, describeError(error));
      })
      .finally(() => this.running.delete(id));
    this.running.set(id, run);
  }

  /** Resolves at once if another process has the lock, else when the sink is paused or removed. */
  private async lead(id: string, name: string): Promise<void> {
    const client = await this.pool.connect();
    let isLeader = false;
    try {
      isLeader = (await client.query<{ locked: boolean }>(LOCK, [id])).rows[0]!.locked;
      if (!isLeader) return;
      await client.query(PREPARE);
      const counts = this.counts.get(name) ?? { rows: 0, failures: 0 };
      this.counts.set(name, counts);
      await new SinkLeader(client, id, this.senders, this.secrets, counts, this.stop.signal).run();
    } finally {
      // Closed, not returned to the pool: that releases the lock.
      client.release(isLeader);
    }
  }
}
