import { Injectable, Logger } from '@nestjs/common';
import type pg from 'pg';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { describeError } from '../errors/describe-error.js';
import { DatabaseService } from '../database/database.service.js';
import type { LogRow } from './columns.js';
import { FutureRows } from './future-rows.js';
import { insertBatch, keepRejected } from './insert-rows.js';
import { Journal } from './journal/journal.js';
import type { JournalFile } from './journal/journal-file.js';
import { LogConnection } from './log-connection.js';
import { weightOf } from './log-row.js';
import { withTimeout } from '../platform/with-timeout.js';

/** A row waits at most this long for company. */
const FLUSH_MS = 100;
const LARGEST_BATCH = 1_000;
/** Rows held in memory, and roughly their bytes; past either they wait in the journal alone. */
const MOST_IN_MEMORY = 20_000;
const MOST_BYTES_IN_MEMORY = 32 * 1024 * 1024;
const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 5_000;
const REMIND_MS = 60_000;
/** While rows wait for their day, the clock of the database is looked at this often. */
const LOOK_MS = 5_000;
/** What Postgres has not taken by then waits in the journal for the next start. */
const STOP_MS = 5_000;

interface Waiting {
  row: LogRow;
  files: readonly JournalFile[];
  /** False when the journal has not taken the whole of it. */
  kept: boolean;
  written?: (inPostgres: boolean) => void;
}

/** Counts since the start: `enqueued = persisted + waiting + parked + rejected` at all times. */
export interface WriterCounts {
  enqueued: number;
  persisted: number;
  /** Waiting whole in the journal, not in memory. */
  parked: number;
  rejected: number;
}

/** Writes rows to Postgres in batches, on a connection of its own, one batch in flight at a time. */
@Injectable()
export class LogWriter {
  readonly counts: WriterCounts = { enqueued: 0, persisted: 0, parked: 0, rejected: 0 };
  /** Called when Postgres takes rows and there is room to read parked ones back. */
  onCaughtUp: () => void = () => {};
  private readonly logger = new Logger('RequestLog');
  readonly future = new FutureRows();
  private readonly connection: LogConnection;
  /** Rows of calls that have just ended. */
  private readonly live: Waiting[] = [];
  /** Rows read back from journal files; at most a batch or two. */
  private readonly old: Waiting[] = [];
  private bytes = 0;
  private timer: NodeJS.Timeout | null = null;
  private flight: Promise<boolean> | null = null;
  /** 0 while Postgres takes rows. */
  private retryMs = 0;
  private batch = LARGEST_BATCH;
  private ready = false;
  private stopped = false;
  /** Monotonic ms; null while Postgres takes rows. */
  private failingSince: number | null = null;
  private lastTold = { reason: '', at: 0 };
  private readonly lookTimer: NodeJS.Timeout;

  constructor(
    @InjectSettings() env: Settings,
    private readonly journal: Journal,
    private readonly database: DatabaseService,
  ) {
    this.connection = new LogConnection(env.databaseUrl);
    this.lookTimer = setInterval(() => {
      if (this.future.count > 0) this.schedule(0);
    }, LOOK_MS).unref();
    database.whenReady(() => {
      this.ready = true;
      this.schedule(0);
      return Promise.resolve();
    });
  }

  /** Memory has no place for another row: it should be journalled whole and parked. */
  get full(): boolean {
    return this.live.length >= MOST_IN_MEMORY || this.bytes >= MOST_BYTES_IN_MEMORY;
  }

  /** For how many milliseconds no row has reached Postgres although some should have. */
  get failingMs(): number {
    return this.failingSince === null ? 0 : performance.now() - this.failingSince;
  }

  /** Rows in memory that are not yet in Postgres. */
  get waiting(): number {
    return this.live.length + this.old.length;
  }

  /**
   * Takes a row; it is visible in Postgres soon after. Its journal files are let go of then.
   *
   * @param kept whether the journal holds all of it
   */
  add(row: LogRow, files: readonly JournalFile[], kept = true): void {
    this.counts.enqueued++;
    this.bytes += weightOf(row);
    this.live.push({ row, files, kept });
    this.schedule(this.live.length >= LARGEST_BATCH ? 0 : FLUSH_MS);
  }

  /** Notes a row that waits whole in this file and nowhere else. */
  park(file: JournalFile): void {
    this.counts.enqueued++;
    this.counts.parked++;
    this.journal.park(file);
  }

  /** Parked rows of which no whole line is left: their file was damaged after it was written. */
  lose(count: number): void {
    this.counts.parked -= count;
    this.counts.rejected += count;
  }

  /**
   * Writes rows read back from the journal, however long that takes.
   *
   * @param parked whether they are this process's own, and counted already
   * @returns false when the writer was stopped first
   */
  persist(rows: readonly LogRow[], parked: boolean): Promise<boolean> {
    if (this.stopped) return Promise.resolve(false);
    if (parked) this.counts.parked -= rows.length;
    else this.counts.enqueued += rows.length;
    return new Promise((written) => {
      rows.forEach((row, i) => {
        this.old.push({ row, files: [], kept: true, ...(i === rows.length - 1 && { written }) });
      });
      this.schedule(0);
    });
  }

  /** Writes what is in memory, for so long; what Postgres does not take then, the journal keeps for the next start. */
  async stop(): Promise<void> {
    await withTimeout(STOP_MS, this.empty());
    this.stopped = true;
    if (this.timer !== null) clearTimeout(this.timer);
    clearInterval(this.lookTimer);
    await this.connection.end();
    await this.flight;
    for (const { written } of this.old) written?.(false);
    this.keepWhole();
    if (this.live.length > 0) {
      this.logger.warn(`${this.live.length} rows stay in the journal until the next start.`);
    }
  }

  /** Until one attempt fails. */
  private async empty(): Promise<void> {
    while (this.ready && !this.stopped && this.live.length > 0) {
      if (!(await (this.flight ?? this.fly()))) return;
    }
  }

  /** The end of a call that the journal could not take when it happened: perhaps it can now. */
  private keepWhole(): void {
    for (const { row, kept } of this.live) {
      if (kept) continue;
      try {
        this.journal.append({ t: 'R', ...row });
      } catch (error) {
        this.logger.error(`The end of call ${row.id} is lost: ${describeError(error)}`);
      }
    }
  }

  private get canReadBack(): boolean {
    return this.counts.parked > this.future.count || this.future.due;
  }

  private schedule(delayMs: number): void {
    if (!this.ready || this.stopped || this.flight !== null) return;
    if (this.timer !== null) {
      // While Postgres fails, only its own back-off sets the pace.
      if (delayMs > 0 || this.retryMs > 0) return;
      clearTimeout(this.timer);
    }
    this.timer = setTimeout(() => void this.fly(), delayMs);
  }

  /** One flight; true when Postgres took what was in it. Never rejects. */
  private fly(): Promise<boolean> {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    this.flight = this.attempt().then((taken) => {
      this.flight = null;
      if (taken) {
        this.retryMs = 0;
        if (this.live.length > 0) this.schedule(this.live.length >= LARGEST_BATCH ? 0 : FLUSH_MS);
        if (this.old.length > 0) this.schedule(0);
        if (this.canReadBack && this.live.length < LARGEST_BATCH) this.onCaughtUp();
      } else {
        this.retryMs = Math.min(Math.max(this.retryMs * 2, FIRST_RETRY_MS), LONGEST_RETRY_MS);
        // Jitter keeps replicas that lost the same server from returning in step.
        if (this.waiting > 0) this.schedule(this.retryMs * (0.5 + Math.random() / 2));
      }
      return taken;
    });
    return this.flight;
  }

  private async attempt(): Promise<boolean> {
    // The other hooks of a start may not have run yet, and one of them makes today's partition.
    if (this.database.notReady !== null) return false;
    try {
      await this.write(this.live);
      await this.write(this.old);
      if (this.future.count > 0) await this.future.look(await this.connection.open());
      if (this.lastTold.reason !== '') this.logger.log('Postgres takes rows again.');
      this.lastTold = { reason: '', at: 0 };
      this.failingSince = null;
      this.batch = Math.min(this.batch * 2, LARGEST_BATCH);
      return true;
    } catch (error) {
      this.failingSince ??= performance.now();
      this.tell(describeError(error));
      // A server that is merely slow may manage less at a time.
      this.batch = Math.max(Math.ceil(this.batch / 2), 10);
      await this.connection.close();
      return false;
    }
  }

  /** Writes the first rows of a lane. Each leaves it, counted, in the same tick in which its result is known. */
  private async write(lane: Waiting[]): Promise<void> {
    if (lane.length === 0) return;
    const client = await this.connection.open();
    const count = await this.spillFuture(client, lane);
    if (count === 0) return;
    const rows = lane.slice(0, count).map(({ row }) => row);
    await insertBatch(client, rows, {
      reject: async (row, error) => {
        this.logger.fatal(await keepRejected(this.journal.root, row, error));
      },
      settled: (settled, rejected) => {
        if (rejected) this.counts.rejected += settled;
        else this.counts.persisted += settled;
        for (const waiting of lane.splice(0, settled)) this.settle(lane, waiting);
      },
    });
  }

  private settle(lane: Waiting[], { row, files, written }: Waiting): void {
    if (lane === this.live) this.bytes -= weightOf(row);
    this.journal.release(files);
    written?.(true);
  }

  /**
   * Takes rows that must wait for their day out of the way of the others: whole, into the journal.
   *
   * @returns how many rows at the front of the lane are left of the batch
   */
  private async spillFuture(client: pg.Client, lane: Waiting[]): Promise<number> {
    const batch = lane.slice(0, this.batch);
    const latest = await this.future.latestStart(client, batch);
    const early = batch.filter(({ row }) => row.started_at > latest);
    if (early.length === 0) return batch.length;
    const others = batch.filter(({ row }) => row.started_at <= latest);
    lane.splice(0, batch.length, ...others);
    for (const [i, waiting] of early.entries()) {
      try {
        const file = this.journal.append({ t: 'R', ...waiting.row });
        this.counts.parked++;
        this.journal.park(file);
        this.future.add(waiting.row, file);
      } catch (error) {
        // Behind the others, which do not have to wait for the journal.
        lane.push(...early.slice(i));
        this.tell(describeError(error));
        break;
      }
      this.settle(lane, waiting);
    }
    return others.length;
  }

  /** Once for each reason, and now and then while it lasts: an outage may be long. */
  private tell(reason: string): void {
    const now = performance.now();
    if (reason === this.lastTold.reason && now - this.lastTold.at < REMIND_MS) return;
    this.lastTold = { reason, at: now };
    const waiting = this.waiting + this.counts.parked;
    this.logger.warn(`Rows wait for Postgres (${waiting}): ${reason}`);
  }
}
