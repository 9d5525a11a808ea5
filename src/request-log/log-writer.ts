import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import pg from 'pg';
import { InjectEnv } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { clientOptions } from '../database/data-source-options.js';
import { DatabaseService } from '../database/database.service.js';
import { describeFault } from '../database/database-fault.js';
import { insertRows } from './insert-rows.js';
import { Journal } from './journal.js';
import type { JournalFile } from './journal-file.js';
import type { LogRow } from './log-row.js';

/** A row waits at most this long for company. */
const FLUSH_MS = 100;
const LARGEST_BATCH = 1_000;
/** Rows held in memory; past it they wait in the journal alone. */
const MOST_IN_MEMORY = 20_000;
const QUERY_TIMEOUT_MS = 30_000;
const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 5_000;

interface Waiting {
  row: LogRow;
  files: readonly JournalFile[];
}

interface ReadBack {
  rows: readonly LogRow[];
  written: () => void;
}

/** Counts since the start: `enqueued = persisted + waiting + parked + rejected` at all times. */
export interface WriterCounts {
  enqueued: number;
  persisted: number;
  parked: number;
  rejected: number;
}

/** Writes rows to Postgres in batches, on a connection of its own, one batch in flight at a time. */
@Injectable()
export class LogWriter {
  readonly counts: WriterCounts = { enqueued: 0, persisted: 0, parked: 0, rejected: 0 };
  /** Called whenever rows in memory have been written and there is room to read parked ones back. */
  onCaughtUp: () => void = () => {};
  private readonly logger = new Logger('RequestLog');
  private queue: Waiting[] = [];
  private readonly readBacks: ReadBack[] = [];
  private client: pg.Client | null = null;
  private timer: NodeJS.Timeout | null = null;
  private flight: Promise<boolean> | null = null;
  private retryMs = FIRST_RETRY_MS;
  private ready = false;

  constructor(
    @InjectEnv() private readonly env: Settings,
    private readonly journal: Journal,
    database: DatabaseService,
  ) {
    database.whenReady(() => {
      this.ready = true;
      this.schedule(0);
      return Promise.resolve();
    });
  }

  /** Takes a row; it is visible in Postgres soon after. Its journal files are let go of then. */
  add(row: LogRow, files: readonly JournalFile[]): void {
    this.counts.enqueued++;
    if (this.queue.length >= MOST_IN_MEMORY && files.length > 0) {
      this.counts.parked++;
      this.journal.park(files);
      return;
    }
    this.queue.push({ row, files });
    this.schedule(this.queue.length >= LARGEST_BATCH ? 0 : FLUSH_MS);
  }

  /** Writes rows read back from a journal; settles when they are in Postgres, however long that takes. */
  persist(rows: readonly LogRow[]): Promise<void> {
    return new Promise((written) => {
      this.readBacks.push({ rows, written });
      this.schedule(0);
    });
  }

  /** Rows in memory that are not yet in Postgres. */
  get waiting(): number {
    return this.queue.length;
  }

  /** Writes what is in memory; when Postgres does not take it, the journal keeps it for the next start. */
  async stop(): Promise<void> {
    while (this.ready && this.queue.length > 0) {
      if (!(await (this.flight ?? this.fly()))) {
        this.logger.warn(`${this.queue.length} rows stay in the journal until the next start.`);
        break;
      }
    }
    this.ready = false;
    if (this.timer !== null) clearTimeout(this.timer);
    await this.disconnect();
  }

  private schedule(delayMs: number): void {
    if (!this.ready || this.flight !== null) return;
    // While Postgres fails, only its own back-off sets the pace.
    if (this.timer !== null && (delayMs > 0 || this.retryMs > FIRST_RETRY_MS)) return;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.fly(), delayMs);
  }

  /** One flight; true when Postgres took what was in it. */
  private fly(): Promise<boolean> {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    this.flight = this.flush().then((taken) => {
      this.flight = null;
      if (taken) this.retryMs = FIRST_RETRY_MS;
      else this.retryMs = Math.min(this.retryMs * 2, LONGEST_RETRY_MS);
      if (this.queue.length + this.readBacks.length > 0) {
        // Jitter keeps replicas that lost the same server from returning in step.
        this.schedule(
          taken ? (this.queue.length >= LARGEST_BATCH ? 0 : FLUSH_MS) : this.retryMs * (0.5 + Math.random()),
        );
        if (taken && this.readBacks.length > 0) this.schedule(0);
      }
      if (taken && this.counts.parked > 0 && this.queue.length < LARGEST_BATCH) this.onCaughtUp();
      return taken;
    });
    return this.flight;
  }

  private async flush(): Promise<boolean> {
    try {
      this.client ??= await this.connect();
      const live = this.queue.slice(0, LARGEST_BATCH);
      if (live.length > 0) {
        await this.insert(
          this.client,
          live.map(({ row }) => row),
        );
        this.queue.splice(0, live.length);
        for (const { files } of live) this.journal.release(files);
        this.counts.persisted += live.length;
      }
      const readBack = this.readBacks[0];
      if (readBack !== undefined) {
        await this.insert(this.client, readBack.rows);
        this.readBacks.shift();
        readBack.written();
      }
      return true;
    } catch (error) {
      this.logger.warn(`Rows wait for Postgres (${this.queue.length} in memory): ${describeFault(error)}`);
      await this.disconnect();
      return false;
    }
  }

  /** Inserts a batch; a row Postgres refuses for its data is found by halving, so that it takes no other with it. */
  private async insert(client: pg.Client, rows: readonly LogRow[]): Promise<void> {
    try {
      await client.query(insertRows(rows));
    } catch (error) {
      const { code = '' } = error as { code?: string };
      // Classes 22 and 23 blame the data; but 23514 is "no partition for this row": the table is not ready.
      if (!/^2[23]/.test(code) || code === '23514') throw error;
      if (rows.length === 1) {
        await this.reject(rows[0]!, error);
        return;
      }
      const middle = rows.length >> 1;
      await this.insert(client, rows.slice(0, middle));
      await this.insert(client, rows.slice(middle));
    }
  }

  /** No input should ever lead here: the row is kept in a file, and the alarm asks for a look. */
  private async reject(row: LogRow, error: unknown): Promise<void> {
    const folder = join(this.journal.root, 'rejected');
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(join(folder, `${row.id}.json`), `${JSON.stringify(row)}\n`, { mode: 0o600 });
    this.counts.rejected++;
    this.counts.persisted--;
    this.logger.fatal(
      `Postgres refused row ${row.id}: ${describeFault(error)}. It is kept in ${folder}; please report this.`,
    );
  }

  private async connect(): Promise<pg.Client> {
    const client = new pg.Client(
      clientOptions(this.env.databaseUrl, {
        applicationName: 'postern-log',
        queryTimeoutMs: QUERY_TIMEOUT_MS,
      }),
    );
    // Without a listener a server that goes away between batches would end the process; the next query reports it.
    client.on('error', (error) => this.logger.debug(describeFault(error)));
    try {
      await client.connect();
    } catch (error) {
      await Promise.race([client.end(), sleep(1_000, undefined, { ref: false })]);
      throw error;
    }
    return client;
  }

  private async disconnect(): Promise<void> {
    const { client } = this;
    this.client = null;
    // A server that hangs would let end() wait for ever; the socket goes with the client.
    if (client !== null) await Promise.race([client.end(), sleep(1_000, undefined, { ref: false })]);
  }
}
