import { Inject, Injectable, Logger, Optional } from '@nestjs/common';
import type pg from 'pg';
import { InjectSettings } from '../../config/config.module.js';
import { directUrl, type Settings } from '../../config/settings.js';
import { describeError } from '../../errors/describe-error.js';
import { DatabaseService } from '../../database/database.service.js';
import type { LogRow } from '../columns.js';
import { CHARGE_KEEPER, type ChargeKeeper } from './charge-keeper.js';
import { FutureRows } from './future-rows.js';
import { type BatchResults, insertBatch, keepRejected, type Settling, settlingWith } from './insert-rows.js';
import { JOB_KEEPER, type JobKeeper } from './job-keeper.js';
import { Journal } from '../journal/journal.js';
import type { JournalFile } from '../journal/journal-file.js';
import { RenewedConnection } from '../../database/renewed-connection.js';
import { RunCounter } from '../../regressions/run-counter.js';
import { weightOf } from '../log-row.js';
import { FailingSpell } from '../../platform/failing-spell.js';
import { OutageLog } from './outage-log.js';
import { type Priceable, priceOnce, ROW_PRICER, type RowPricer } from './row-pricer.js';
import { patience, withTimeout } from '../../platform/patience.js';

/** A batch takes some 20 ms. */
const QUERY_TIMEOUT = patience('a batch of rows', 10_000);
/** A row waits at most this long for others to fill its batch. */
const FLUSH_MS = 100;
const MAX_BATCH = 1_000;
/** Rows held in memory, and roughly their bytes; beyond either limit rows are spilled to the journal. */
const MAX_IN_MEMORY = 20_000;
const MAX_BYTES_IN_MEMORY = 32 * 1024 * 1024;
const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;
/** While rows lie in the future, the clock of the database is checked this often. */
const CHECK_MS = 5_000;
/** At shutdown: rows that are not written by then stay in the journal until the next start. */
const STOP = patience('rows at a stop', 5_000);

/** A row that waits for the log writer. */
interface Waiting extends Priceable {
  files: readonly JournalFile[];
  /** Roughly its bytes in memory; not counted for a row that was read back. */
  weight?: number;
  /** False if the journal lacks part of it. */
  journalled: boolean;
  written?: (inPostgres: boolean) => void;
}

/** Counts since the start: `enqueued = persisted + waiting + spilled + rejected` at all times. */
interface WriterCounts {
  enqueued: number;
  persisted: number;
  /** Whole rows that wait in the journal, not in memory. */
  spilled: number;
  rejected: number;
}

/** Writes rows to Postgres in batches, on a connection of its own, one batch in flight at a time. */
@Injectable()
export class LogWriter {
  readonly counts: WriterCounts = { enqueued: 0, persisted: 0, spilled: 0, rejected: 0 };
  private readonly logger = new Logger('RequestLog');
  readonly future = new FutureRows();
  /** The `seq` that acknowledged the last batch; 0: batches are not counted, and no finished journal file is kept. */
  acknowledged = 0n;
  private readonly connection: RenewedConnection;
  private readonly settling: Settling | null;
  /** Rows of calls that have just ended. */
  private readonly live: Waiting[] = [];
  /** Rows read back from journal files; at most a batch or two. */
  private readonly old: Waiting[] = [];
  private readonly caughtUpHooks: (() => void)[] = [];
  private bytes = 0;
  private timer: NodeJS.Timeout | null = null;
  private inFlight: Promise<boolean> | null = null;
  /** 0 while Postgres accepts rows. */
  private retryMs = 0;
  private batch = MAX_BATCH;
  private ready = false;
  private stopped = false;
  private readonly failing = new FailingSpell();
  private readonly outage = new OutageLog(this.logger);
  private readonly checkTimer: NodeJS.Timeout;

  constructor(
    @InjectSettings() env: Settings,
    private readonly journal: Journal,
    private readonly database: DatabaseService,
    /** Keeps budgets; null: calls reserve nothing. */
    @Optional() @Inject(CHARGE_KEEPER) private readonly charges: ChargeKeeper | null = null,
    /** Computes the cost of rows; null: they have none but what their provider reported. */
    @Optional() @Inject(ROW_PRICER) private readonly pricer: RowPricer | null = null,
    /** Follows jobs; null: nothing does. */
    @Optional() @Inject(JOB_KEEPER) private readonly jobs: JobKeeper | null = null,
    /** Counts batches, so that a loss in Postgres is noticed; null: they are not counted. */
    @Optional() @Inject(RunCounter) private readonly runs: RunCounter | null = null,
  ) {
    this.settling = charges && settlingWith(charges);
    this.connection = new RenewedConnection(directUrl(env), {
      applicationName: 'postern-log',
      queryTimeout: QUERY_TIMEOUT,
    });
    this.checkTimer = setInterval(() => {
      if (this.future.count > 0) this.schedule(0);
    }, CHECK_MS).unref();
    database.whenReady(() => {
      this.ready = true;
      this.schedule(0);
      return Promise.resolve();
    });
  }

  /** Registers a hook that runs when Postgres accepts rows and memory has space to read spilled ones back. */
  whenCaughtUp(hook: () => void): void {
    this.caughtUpHooks.push(hook);
  }

  /** True if memory has no space for another row: it should be journalled whole and spilled. */
  get full(): boolean {
    return this.live.length >= MAX_IN_MEMORY || this.bytes >= MAX_BYTES_IN_MEMORY;
  }

  /** Milliseconds for which writes to Postgres have failed, all or again and again; 0 while they succeed. */
  get failingMs(): number {
    return this.failing.ms();
  }

  /** Rows in memory that are not yet in Postgres. */
  get waiting(): number {
    return this.live.length + this.old.length;
  }

  /** The same rows. */
  *waitingRows(): Generator<LogRow> {
    for (const { row } of this.live) yield row;
    for (const { row } of this.old) yield row;
  }

  /**
   * Adds a row. Its journal files are released once it is in Postgres.
   *
   * @param journalled whether the journal holds all of it
   */
  add(row: LogRow, files: readonly JournalFile[], journalled = true): void {
    this.counts.enqueued++;
    const weight = weightOf(row);
    this.bytes += weight;
    this.live.push({ row, files, journalled, weight });
    this.schedule(this.live.length >= MAX_BATCH ? 0 : FLUSH_MS);
  }

  /** Counts a row that waits whole in this file, not in memory. */
  spill(file: JournalFile): void {
    this.counts.enqueued++;
    this.counts.spilled++;
    this.journal.spill(file);
  }

  /** Counts spilled rows whose records were damaged after they were written. */
  countLost(count: number): void {
    this.counts.spilled -= count;
    this.counts.rejected += count;
  }

  /**
   * Writes rows read back from the journal, and waits until they are in Postgres.
   *
   * @param spilled whether they are this process's own, which are already counted
   * @returns false if the writer was stopped first
   */
  persist(rows: readonly LogRow[], spilled: boolean): Promise<boolean> {
    if (this.stopped) return Promise.resolve(false);
    if (spilled) this.counts.spilled -= rows.length;
    else this.counts.enqueued += rows.length;
    return new Promise((written) => {
      rows.forEach((row, i) => {
        this.old.push({ row, files: [], journalled: true, ...(i === rows.length - 1 && { written }) });
      });
      this.schedule(0);
    });
  }

  /** Returns what a dead process held of limits, once its rows are in Postgres. @param run the UUID of its process run */
  async forgetHolds(run: string): Promise<void> {
    await this.charges?.forgetHolds(await this.connection.open(), run);
  }

  /** Writes the rows in memory until a timeout; the rest stays in the journal until the next start. */
  async stop(): Promise<void> {
    await withTimeout(STOP.ms, this.empty());
    this.stopped = true;
    if (this.timer !== null) clearTimeout(this.timer);
    clearInterval(this.checkTimer);
    await this.connection.end();
    await this.inFlight;
    await this.charges?.stopped();
    for (const { written } of this.old) written?.(false);
    this.journalRemaining();
    if (this.live.length > 0) {
      this.logger.warn(`${this.live.length} rows stay in the journal until the next start.`);
    }
  }

  /** Writes batches until one fails. */
  private async empty(): Promise<void> {
    // The process ends right after its start: the change feed is about to poll.
    if (this.ready && this.live.length > 0) await this.runs?.compared;
    while (this.ready && !this.stopped && this.live.length > 0) {
      if (!(await (this.inFlight ?? this.flush()))) return;
    }
  }

  /** Retries to journal the ends of calls that could not be journalled before. */
  private journalRemaining(): void {
    for (const { row, journalled } of this.live) {
      if (journalled) continue;
      try {
        this.journal.append({ t: 'R', ...row });
      } catch (error) {
        this.logger.error(`The end of call ${row.id} is lost: ${describeError(error)}`);
      }
    }
  }

  private get canReadBack(): boolean {
    return this.counts.spilled > this.future.count || this.future.due;
  }

  private schedule(delayMs: number): void {
    if (!this.ready || this.stopped || this.inFlight !== null) return;
    if (this.timer !== null) {
      // While Postgres fails, only the back-off starts an attempt.
      if (delayMs > 0 || this.retryMs > 0) return;
      clearTimeout(this.timer);
    }
    this.timer = setTimeout(() => void this.flush(), delayMs);
  }

  /** Writes one batch of each queue. Never rejects. @returns whether Postgres accepted them */
  private flush(): Promise<boolean> {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    this.inFlight = this.attempt().then((accepted) => {
      this.inFlight = null;
      if (accepted) {
        this.retryMs = 0;
        if (this.live.length > 0) this.schedule(this.live.length >= MAX_BATCH ? 0 : FLUSH_MS);
        if (this.old.length > 0) this.schedule(0);
        if (this.canReadBack && this.live.length < MAX_BATCH) for (const hook of this.caughtUpHooks) hook();
      } else {
        this.retryMs = Math.min(Math.max(this.retryMs * 2, FIRST_RETRY_MS), MAX_RETRY_MS);
        // Jitter, so that replicas that lost the same server do not all return at once.
        if (this.waiting > 0) this.schedule(this.retryMs * (0.5 + Math.random() / 2));
      }
      return accepted;
    });
    return this.inFlight;
  }

  private async attempt(): Promise<boolean> {
    // The other start hooks may not have run yet, and one of them creates today's partition.
    if (this.database.notReady !== null) return false;
    // The change feed has not polled yet.
    if (this.runs !== null && this.runs.server === null) return false;
    try {
      await this.write(this.live);
      await this.write(this.old);
      if (this.future.count > 0) await this.future.check(await this.connection.open());
      this.outage.ended('Postgres accepts rows again.');
      this.failing.succeeded();
      this.batch = Math.min(this.batch * 2, MAX_BATCH);
      return true;
    } catch (error) {
      this.failing.failed();
      this.report(describeError(error));
      // A slow server may manage a smaller batch.
      this.batch = Math.max(Math.ceil(this.batch / 2), 10);
      await this.connection.close();
      return false;
    }
  }

  /** Writes the first rows of a queue. Each is removed and counted in the same tick in which its result is known. */
  private async write(queue: Waiting[]): Promise<void> {
    if (queue.length === 0) return;
    const client = await this.connection.open();
    const count = await this.spillFuture(client, queue);
    if (count === 0) return;
    const batch = queue.slice(0, count);
    await priceOnce(this.pricer, batch);
    const rows = batch.map(({ row }) => row);
    const results: BatchResults = {
      reject: async (row, error) => {
        this.logger.fatal(await keepRejected(this.journal.root, row, error));
      },
      settled: (settled, rejected, seq) => {
        if (seq !== null) this.acknowledged = seq;
        if (rejected) this.counts.rejected += settled;
        else this.counts.persisted += settled;
        const done = queue.splice(0, settled);
        this.charges?.written(done.map(({ row }) => row));
        for (const waiting of done) this.settle(waiting, seq ?? 0n);
      },
    };
    await insertBatch(client, rows, results, this.settling, this.jobs, queue === this.live, this.runs);
  }

  /** @param seq the one that acknowledged the row; 0: none has */
  private settle({ files, weight = 0, written }: Waiting, seq: bigint): void {
    this.bytes -= weight;
    this.journal.acknowledge(files, seq);
    written?.(true);
  }

  /**
   * Moves rows that lie in the future to the journal, so that they do not block the others.
   *
   * @returns how many rows of the batch are left at the front of the queue
   */
  private async spillFuture(client: pg.Client, queue: Waiting[]): Promise<number> {
    const batch = queue.slice(0, this.batch);
    const latest = await this.future.latestStart(client, batch);
    const early = batch.filter(({ row }) => row.started_at > latest);
    if (early.length === 0) return batch.length;
    const others = batch.filter(({ row }) => row.started_at <= latest);
    queue.splice(0, batch.length, ...others);
    for (const [i, waiting] of early.entries()) {
      try {
        const file = this.journal.append({ t: 'R', ...waiting.row });
        this.counts.spilled++;
        this.journal.spill(file);
        this.future.add(waiting.row, file);
      } catch (error) {
        // After the others, which do not depend on the journal.
        queue.push(...early.slice(i));
        this.report(describeError(error));
        break;
      }
      this.settle(waiting, 0n);
    }
    return others.length;
  }

  private report(reason: string): void {
    this.outage.report(`Rows wait for Postgres (${this.waiting + this.counts.spilled})`, reason);
  }
}
