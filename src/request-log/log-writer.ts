import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import pg from 'pg';
import { InjectEnv } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { clientOptions } from '../database/data-source-options.js';
import { DatabaseService } from '../database/database.service.js';
import { describeFault } from '../database/database-fault.js';
import { insertRows } from './insert-rows.js';
import type { LogRow } from './log-row.js';

/** A row waits at most this long for company. */
const FLUSH_MS = 100;
const LARGEST_BATCH = 1_000;
const QUERY_TIMEOUT_MS = 30_000;
const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 5_000;
/** How long a shutdown waits for Postgres to take what is left. */
const LAST_FLUSH_MS = 10_000;

/** Writes rows to Postgres in batches, on a connection of its own, one batch in flight at a time. */
@Injectable()
export class LogWriter implements OnApplicationShutdown {
  private readonly logger = new Logger('RequestLog');
  private queue: LogRow[] = [];
  private client: pg.Client | null = null;
  private timer: NodeJS.Timeout | null = null;
  private flight: Promise<void> | null = null;
  private retryMs = FIRST_RETRY_MS;
  private ready = false;

  constructor(
    @InjectEnv() private readonly env: Settings,
    database: DatabaseService,
  ) {
    database.whenReady(() => {
      this.ready = true;
      this.flushSoon(0);
      return Promise.resolve();
    });
  }

  /** Takes a row; it is visible in Postgres soon after. */
  add(row: LogRow): void {
    this.queue.push(row);
    if (this.ready) this.flushSoon(this.queue.length >= LARGEST_BATCH ? 0 : FLUSH_MS);
  }

  /** Rows not yet in Postgres. */
  get waiting(): number {
    return this.queue.length;
  }

  async onApplicationShutdown(): Promise<void> {
    const deadline = Date.now() + LAST_FLUSH_MS;
    while (this.ready && this.queue.length > 0 && Date.now() < deadline) {
      if (this.timer !== null && this.retryMs === FIRST_RETRY_MS) this.flushSoon(0, true);
      await (this.flight ?? new Promise((resolve) => setTimeout(resolve, 20)));
    }
    if (this.timer !== null) clearTimeout(this.timer);
    if (this.queue.length > 0)
      this.logger.error(`${this.queue.length} request-log rows could not be written.`);
    await this.client?.end().catch((error) => this.logger.warn(describeFault(error)));
  }

  private flushSoon(delayMs: number, sooner = false): void {
    if (this.flight !== null) return;
    if (this.timer !== null) {
      if (!sooner && delayMs > 0) return;
      clearTimeout(this.timer);
    }
    this.timer = setTimeout(() => {
      this.timer = null;
      this.flight = this.flush().finally(() => {
        this.flight = null;
        if (this.queue.length > 0) this.flushSoon(this.retryMs === FIRST_RETRY_MS ? 0 : this.retryMs);
      });
    }, delayMs);
  }

  private async flush(): Promise<void> {
    const batch = this.queue.slice(0, LARGEST_BATCH);
    try {
      this.client ??= await this.connect();
      await this.insert(this.client, batch);
      this.queue = this.queue.slice(batch.length);
      this.retryMs = FIRST_RETRY_MS;
    } catch (error) {
      this.logger.warn(`Request-log rows wait (${this.queue.length}): ${describeFault(error)}`);
      this.retryMs = Math.min(this.retryMs * 2, LONGEST_RETRY_MS);
      await this.disconnect();
    }
  }

  /** Inserts a batch; a row Postgres refuses for its data is found by halving, so that it takes no other with it. */
  private async insert(client: pg.Client, rows: readonly LogRow[]): Promise<void> {
    try {
      await client.query(insertRows(rows));
    } catch (error) {
      const { code = '' } = error as { code?: string };
      // 23514 is "no partition for this row": the table is not ready, the row is not at fault.
      if (!/^2[23]/.test(code) || code === '23514') throw error;
      if (rows.length === 1) {
        this.logger.fatal(
          `Row ${rows[0]!.id} was refused by Postgres: ${describeFault(error)}. This is a bug.`,
        );
        return;
      }
      const middle = rows.length >> 1;
      await this.insert(client, rows.slice(0, middle));
      await this.insert(client, rows.slice(middle));
    }
  }

  private async connect(): Promise<pg.Client> {
    const client = new pg.Client(
      clientOptions(this.env.databaseUrl, {
        applicationName: 'postern-log',
        queryTimeoutMs: QUERY_TIMEOUT_MS,
      }),
    );
    // Without a listener a server that goes away between batches would end the process; the next query reports it.
    client.on('error', () => void this.disconnect());
    await client.connect();
    return client;
  }

  private async disconnect(): Promise<void> {
    const { client } = this;
    this.client = null;
    await client?.end().catch((error) => this.logger.debug(describeFault(error)));
  }
}
