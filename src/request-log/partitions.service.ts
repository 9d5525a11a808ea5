import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Cron, CronExpression } from '@nestjs/schedule';
import type pg from 'pg';
import { InjectSettings } from '../config/config.module.js';
import { directUrl, type Settings } from '../config/settings.js';
import { clientOptions } from '../database/data-source-options.js';
import { GatewayClient } from '../database/gateway-client.js';
import { describeError } from '../errors/describe-error.js';
import { DatabaseService } from '../database/database.service.js';
import { CLOSE_TIMEOUT, patience, withTimeout } from '../platform/patience.js';
import { createDaysAhead, dropExpired } from './partitions.js';

const QUERY_TIMEOUT = patience('a statement about partitions', 30_000);
/** A start waits this long for another process that is creating partitions. */
const START_WAIT = patience('the lock of partitions at a start', 5_000);

/** @param table a partition, quoted where needed */
export type NeedsPartition = (client: pg.Client, table: string) => Promise<boolean>;
/** @returns a callback that runs after the drop has committed */
export type BeforeDrop = (client: pg.Client, table: string) => Promise<() => void>;

/**
 * Keeps the partitions of `request_log`: creates those of today and the next seven days, and drops expired ones. A day
 * that is missing all the same is created by the log writer.
 */
@Injectable()
export class PartitionsService implements OnApplicationShutdown {
  private readonly logger = new Logger('Partitions');
  private round: Promise<void> = Promise.resolve();
  private busy = false;
  private readonly needed: NeedsPartition[] = [];
  private readonly dropping: BeforeDrop[] = [];
  private stopped = false;

  constructor(
    @InjectSettings() private readonly env: Settings,
    private readonly database: DatabaseService,
  ) {
    database.whenReady(() => this.atStart());
  }

  /** Registers what still needs the rows of an expired partition: it is not dropped while one of these returns true. */
  keepWhile(isNeeded: NeedsPartition): void {
    this.needed.push(isNeeded);
  }

  /** Registers what is done in the transaction that drops a partition, which may be rolled back and tried again. */
  beforeDrop(work: BeforeDrop): void {
    this.dropping.push(work);
  }

  @Cron(CronExpression.EVERY_10_MINUTES, { timeZone: 'UTC' })
  onSchedule(): void {
    if (this.env.worker === 1 && this.database.notReady === null) this.keep();
  }

  async onApplicationShutdown(): Promise<void> {
    this.stopped = true;
    // Each step is one transaction: a process that is killed leaves nothing half done.
    await withTimeout(CLOSE_TIMEOUT.ms, this.round);
  }

  /** Today's partition exists before the first row is written. Everything else is done after the start. */
  private async atStart(): Promise<void> {
    try {
      await this.withClient((client) => createDaysAhead(client, START_WAIT.ms));
    } catch (error) {
      this.logger.warn(
        `Partitions could not be created at the start: ${describeError(error)}. The log writer creates those it needs.`,
      );
    }
    if (this.env.worker === 1) this.keep();
  }

  /** Starts a run unless one is in progress. */
  private keep(): void {
    if (this.busy || this.stopped) return;
    this.busy = true;
    this.round = this.runRound().finally(() => (this.busy = false));
  }

  private async runRound(): Promise<void> {
    try {
      await this.withClient(async (client) => {
        await createDaysAhead(client);
        await this.dropExpired(client);
      });
    } catch (error) {
      if (this.stopped) return;
      this.logger.warn(
        `The partitions of the request log could not be maintained: ${describeError(error)}. Trying again in 10 minutes.`,
      );
    }
  }

  private async dropExpired(client: pg.Client): Promise<void> {
    const days = this.env.requestLogRetentionDays;
    const { tables, postponed } = await dropExpired(client, {
      now: Date.now(),
      days,
      stopped: () => this.stopped,
      isNeeded: async (table) => {
        for (const isNeeded of this.needed) if (await isNeeded(client, table)) return true;
        return false;
      },
      beforeDrop: async (table) => {
        const callbacks: (() => void)[] = [];
        for (const work of this.dropping) callbacks.push(await work(client, table));
        return () => callbacks.forEach((callback) => callback());
      },
    });
    if (tables.length > 0)
      this.logger.log(`Dropped partitions older than ${days} days: ${tables.join(', ')}`);
    if (postponed) {
      this.logger.warn(
        'Expired partitions were not dropped, because the log has none for yesterday. If the clock is right, they are dropped tomorrow.',
      );
    }
  }

  /** A connection of its own, so that key look-ups never wait for it. */
  private async withClient(work: (client: pg.Client) => Promise<unknown>): Promise<void> {
    const client = new GatewayClient(
      clientOptions(directUrl(this.env), {
        applicationName: 'postern-partitions',
        queryTimeout: QUERY_TIMEOUT,
      }),
    );
    try {
      await client.connect();
      await work(client);
    } finally {
      await Promise.race([client.end(), sleep(1_000, undefined, { ref: false })]);
    }
  }
}
