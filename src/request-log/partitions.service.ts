import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Cron, CronExpression } from '@nestjs/schedule';
import pg from 'pg';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { ADVISORY_LOCKS } from '../database/advisory-locks.js';
import { clientOptions } from '../database/data-source-options.js';
import { describeError } from '../errors/describe-error.js';
import { DatabaseService } from '../database/database.service.js';
import { GOODBYE_MS, withTimeout } from '../platform/with-timeout.js';
import { keepPartitions, makeAhead, type RoundReport } from './partition-round.js';
import { PlanOutdated } from './partition-moves.js';

/** One step of a move; a move of millions of rows has many. */
const QUERY_TIMEOUT_MS = 120_000;
/** A start waits this long for another one that is making today's partition. */
const START_WAIT = '5s';

/**
 * Keeps the partitions of `request_log`: today's and the next seven ready, rows that came without one moved to their
 * day, expired days dropped. Nothing depends on it in a hurry: without a partition a row goes to the default one, and
 * nothing is lost while it fails.
 */
@Injectable()
export class PartitionsService implements OnApplicationShutdown {
  /** Of this process, since the start. `failures` counts rounds that did not end well in a row. */
  readonly counts = { rounds: 0, failures: 0, made: 0, moved: 0, dropped: 0 };
  private readonly logger = new Logger('Partitions');
  private round: Promise<void> = Promise.resolve();
  private busy = false;
  private stopped = false;

  constructor(
    @InjectSettings() private readonly env: Settings,
    private readonly database: DatabaseService,
  ) {
    database.whenReady(() => this.atStart());
  }

  @Cron(CronExpression.EVERY_10_MINUTES, { timeZone: 'UTC' })
  onSchedule(): void {
    if (this.env.worker === 1 && this.database.notReady === null) this.keep();
  }

  async onApplicationShutdown(): Promise<void> {
    this.stopped = true;
    // Killed anywhere it leaves nothing that the next round does not clean up.
    await withTimeout(GOODBYE_MS, this.round);
  }

  /** Today's partition is there before the first row is written; everything else is done behind the start. */
  private async atStart(): Promise<void> {
    try {
      await this.withClient(async (client) => {
        await client.query('BEGIN');
        await client.query(`SET LOCAL lock_timeout = '${START_WAIT}'`);
        await client.query('SELECT pg_advisory_lock($1)', [ADVISORY_LOCKS.partitions]);
        await client.query('COMMIT');
        await makeAhead(client, Date.now());
      });
    } catch (error) {
      this.logger.warn(
        `Partitions were not made at the start: ${describeError(error)}. Rows are safe without.`,
      );
    }
    if (this.env.worker === 1) this.keep();
  }

  /** One round at a time in this process, and in all. */
  private keep(): void {
    if (this.busy || this.stopped) return;
    this.busy = true;
    this.round = this.runRound().finally(() => (this.busy = false));
  }

  private async runRound(): Promise<void> {
    try {
      await this.withClient(async (client) => {
        const { rows } = await client.query<{ taken: boolean }>('SELECT pg_try_advisory_lock($1) AS taken', [
          ADVISORY_LOCKS.partitions,
        ]);
        if (!rows[0]!.taken) return;
        this.tell(
          await keepPartitions(client, {
            now: Date.now(),
            retentionDays: this.env.requestLogRetentionDays,
            stopped: () => this.stopped,
          }),
        );
      });
      this.counts.failures = 0;
    } catch (error) {
      if (this.stopped) return;
      this.counts.failures++;
      const reason = error instanceof PlanOutdated ? 'rows of new days kept coming' : describeError(error);
      this.logger.warn(
        `The partitions of the request log could not be kept: ${reason}. Trying again in 10 minutes.`,
      );
    }
  }

  private tell({ made, moved, dropped, kept }: RoundReport): void {
    this.counts.rounds++;
    this.counts.made += made.length;
    this.counts.moved += moved;
    this.counts.dropped += dropped.length;
    if (moved > 0)
      this.logger.warn(`${moved} rows had come without a partition; they are with their days now.`);
    if (dropped.length > 0) {
      this.logger.log(
        `Dropped what is older than ${this.env.requestLogRetentionDays} days: ${dropped.join(', ')}`,
      );
    }
    if (kept) {
      this.logger.warn(
        'Days are due to be dropped, but the log has no yesterday. If the clock is right they go tomorrow.',
      );
    }
  }

  /** A connection of its own: its locks are the session's, and look-ups must not wait for it. */
  private async withClient(work: (client: pg.Client) => Promise<void>): Promise<void> {
    const client = new pg.Client(
      clientOptions(this.env.databaseUrl, {
        applicationName: 'postern-partitions',
        queryTimeoutMs: QUERY_TIMEOUT_MS,
      }),
    );
    // A server that goes away is told by the query under way; without a listener it would end the process.
    client.on('error', () => {});
    try {
      await client.connect();
      await work(client);
    } finally {
      await Promise.race([letGo(client), sleep(1_000, undefined, { ref: false })]);
    }
  }
}

async function letGo(client: pg.Client): Promise<void> {
  // Behind a pooler in transaction mode the connection, and with it the lock, outlives us.
  await client.query('SELECT pg_advisory_unlock_all()').catch(() => {});
  await client.end();
}
