import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { DataSource } from 'typeorm';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { describeError } from '../errors/describe-error.js';
import { CLOSE_TIMEOUT, withTimeout } from '../platform/patience.js';
import { DatabaseService } from './database.service.js';
import { ReplicaJobs } from './replica-jobs.service.js';

const EVERY_MS = 60_000;
const PAUSE_MS = 200;

/**
 * Deletes what is old, once a minute in one process of all replicas, in transactions that are short. In each of a hundred
 * replicas it would mostly find that others have deleted it.
 */
@Injectable()
export abstract class Retention implements OnApplicationShutdown {
  protected abstract readonly logger: Logger;
  /** What could not be done, for the log. */
  protected abstract readonly failure: string;
  private running: Promise<void> | null = null;
  private stopped = false;

  constructor(
    protected readonly dataSource: DataSource,
    private readonly database: DatabaseService,
    private readonly jobs: ReplicaJobs,
    @InjectSettings() protected readonly env: Settings,
  ) {}

  @Interval(EVERY_MS)
  onInterval(): void {
    if (this.env.worker !== 1 || this.database.notReady !== null) return;
    this.running ??= this.jobs
      .onlyOneReplica(this.constructor.name, () => this.run())
      .then(() => {})
      .catch((error: unknown) => {
        if (!this.stopped) this.logger.warn(`${this.failure}: ${describeError(error)}`);
      })
      .finally(() => (this.running = null));
  }

  async onApplicationShutdown(): Promise<void> {
    this.stopped = true;
    if (this.running !== null) await withTimeout(CLOSE_TIMEOUT.ms, this.running);
  }

  /** One pass. */
  abstract run(): Promise<void>;

  /** @param step one transaction @returns once it has found no more, or the application stops */
  protected async repeat(step: () => Promise<boolean>): Promise<void> {
    while (!this.stopped && (await step())) await sleep(PAUSE_MS);
  }

  /** @param statement of deleteSome() */
  protected repeatDelete(statement: string): Promise<void> {
    return this.repeat(async () => (await this.dataSource.query<[{ more: boolean }]>(statement))[0].more);
  }
}

/** Rows that deleteSome() deletes at most. */
const ROWS = 1_000;

/** Deletes some of the rows for which the condition holds. Replicas take different rows. */
export const deleteSome = (table: string, key: string, condition: string) => `
  WITH gone AS (
    DELETE FROM ${table} WHERE ${key} IN (
      SELECT ${key} FROM ${table} WHERE ${condition} LIMIT ${ROWS} FOR UPDATE SKIP LOCKED) RETURNING 1)
  SELECT count(*)::int = ${ROWS} AS more FROM gone`;
