import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '@nestjs/common';
import type pg from 'pg';
import type { DataSource } from 'typeorm';
import { patience, withTimeout } from '../platform/patience.js';
import { LAST_ID, type Place } from '../request-log/log-cursor.js';
import { LogSpan } from '../request-log/log-span.js';
import { recordedUntil } from '../request-log/recorded-until.js';
import { lockAt, moveTo, progressOf, skipTo } from './consumer-progress.js';
import { type ConsumedRow, MAX_ROWS, readRows } from './consumer-rows.js';
import type { RegisteredConsumer } from './log-consumers.js';

/** How often new rows are looked for. */
const LOOK_MS = 1_000;
/** The cursor is moved over a time without rows in steps of this length at least: each move is a transaction. */
const SKIP_MS = 3_000;
const MAX_PAUSE_MS = 60_000;
const REMIND_MS = 60_000;
/** How long a consumer may take for the rows of one transaction. */
const CONSUMING = patience('a consumer', 300_000);

/**
 * Gives the rows of the request log to one consumer, while this process holds the lock of the consumer: the session of the
 * client holds it. What makes each row arrive once is the transaction, which locks the progress, calls the consumer and
 * moves the progress. The lock of the session only saves other processes the work.
 */
export class ConsumerLeader {
  private readonly span = new LogSpan(MAX_ROWS);
  private failures = 0;
  private loggedAt = -Infinity;

  constructor(
    private readonly client: pg.PoolClient,
    private readonly one: RegisteredConsumer,
    private readonly dataSource: DataSource,
    private readonly logger: Logger,
    private readonly signal: AbortSignal,
  ) {}

  /** Resolves when the process ends. @throws any error of the client */
  async run(): Promise<void> {
    while (!this.signal.aborted) if (!(await this.step())) await this.pause(LOOK_MS);
  }

  /** @returns whether there may be more rows */
  private async step(): Promise<boolean> {
    const { client, one, span } = this;
    const after = await progressOf(client, one.name, one.consumer);
    const horizon = await recordedUntil(client);
    const until = span.end(after.recordedAt, horizon);
    if (until < after.recordedAt) return false;
    const { rows, isFull } = await readRows(client, after, { recordedAt: until, id: LAST_ID });
    const isLast = until >= horizon;
    span.found(rows.length, isFull ? millisecondsOf(rows) : null, isLast);
    if (rows.length > 0) await this.consume(after, rows);
    else if (!isLast || until.getTime() - after.recordedAt.getTime() >= SKIP_MS)
      await skipTo(client, one.name, after, until);
    return !isLast || isFull;
  }

  private async consume(after: Place, rows: readonly ConsumedRow[]): Promise<void> {
    const { name, consumer } = this.one;
    const { recorded_at: recordedAt, id } = rows.at(-1)!;
    try {
      const isDone = await this.dataSource.transaction(async (manager) => {
        const transaction = await lockAt(manager, name, after);
        if (transaction === null) return false;
        // One that waits for ever would keep its rows from every process, and nobody would be told.
        const { ms } = CONSUMING;
        if (!(await withTimeout(ms, Promise.resolve(consumer.rows(manager, rows))))) {
          // What follows a ROLLBACK alone would be stored by itself. In one message, also if the transaction has failed.
          await manager.query('ROLLBACK; SELECT pg_terminate_backend(pg_backend_pid())').catch(() => {});
          throw new Error(`it took longer than ${ms / 1_000} s for ${rows.length} rows`);
        }
        await moveTo(manager, name, [after, { recordedAt: new Date(recordedAt), id }], transaction);
        return true;
      });
      if (isDone) this.one.rows += rows.length;
    } catch (error) {
      if (!this.signal.aborted) await this.failed(error);
      return;
    }
    if (this.failures > 0) this.logger.log(`The consumer "${name}" works again.`);
    this.failures = 0;
  }

  private async failed(error: unknown): Promise<void> {
    this.failures++;
    this.one.failures++;
    const now = performance.now();
    if (now - this.loggedAt >= REMIND_MS) {
      this.loggedAt = now;
      const stack = error instanceof Error ? error.stack : undefined;
      const what = `The consumer "${this.one.name}" failed and gets the same rows again (logged once a minute)`;
      this.logger.error(`${what}: ${String(error)}`, stack);
    }
    await this.pause(Math.min(500 * 2 ** this.failures, MAX_PAUSE_MS));
  }

  private async pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.signal, ref: false }).catch(() => {});
  }
}

function millisecondsOf(rows: readonly ConsumedRow[]): number {
  return Date.parse(rows.at(-1)!.recorded_at) - Date.parse(rows[0]!.recorded_at);
}
