import { rm, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { describeError } from '../../errors/describe-error.js';
import { DatabaseService } from '../../database/database.service.js';
import type { PutBack, Regression } from '../../regressions/regression.js';
import { Regressions } from '../../regressions/regressions.service.js';
import { runDirectories, abandonedReserves, drainerOf, numberedFiles, runOf } from './run-directories.js';
import { Journal } from './journal.js';
import type { JournalFile } from './journal-file.js';
import { KeptOfDeadRuns } from './kept-of-dead-runs.service.js';
import { LostRowsService } from './lost-rows.service.js';
import { readDeadRows, readSpilledRows } from './recovery.js';
import { LogWriter } from '../writer/log-writer.js';

const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 60_000;
const NONE: ReadonlySet<string> = new Set();

/** Writes rows to Postgres that are only in the journal: calls of dead processes, and rows spilled during an outage. */
@Injectable()
export class JournalDrainService implements OnApplicationShutdown {
  /** Since the start: damaged records skipped, calls recorded as interrupted, rows written from files. */
  readonly counts = { corrupt: 0, interrupted: 0, drained: 0 };
  private readonly logger = new Logger('Journal');
  private readonly stopping = new AbortController();
  private isStarted = false;
  /** One after the other. */
  private deadRuns: Promise<void> = Promise.resolve();
  private spilledRows: Promise<void> | null = null;

  constructor(
    private readonly journal: Journal,
    private readonly writer: LogWriter,
    private readonly kept: KeptOfDeadRuns,
    private readonly lost: LostRowsService,
    @InjectSettings() private readonly env: Settings,
    database: DatabaseService,
    private readonly regressions: Regressions,
  ) {
    database.whenReady(() => {
      // In the background: calls are served meanwhile. Once, however often a start is attempted.
      if (!this.isStarted) void this.drainAll();
      this.isStarted = true;
      return Promise.resolve();
    });
    writer.whenCaughtUp(() => {
      this.spilledRows ??= this.untilDone(() => this.readSpilledBack()).finally(
        () => (this.spilledRows = null),
      );
    });
    regressions.onRegression('rows', {
      refuse: (regression) => this.hold(regression),
      putBack: (regression) => this.putBackDead(regression),
      dismissed: ({ runs }) => {
        for (const run of runs.keys()) if (run !== regressions.run) journal.kept.release(run);
      },
    });
  }

  onApplicationShutdown(): void {
    this.stopping.abort();
  }

  private drainAll(): Promise<void> {
    return this.untilDone(() => this.oneAtATime(() => this.drainDeadRuns()));
  }

  private oneAtATime(drain: () => Promise<boolean>): Promise<boolean> {
    const result = this.deadRuns.then(drain);
    this.deadRuns = result.then(
      () => {},
      () => {},
    );
    return result;
  }

  private async untilDone(attempt: () => Promise<boolean>): Promise<void> {
    const { signal } = this.stopping;
    for (let retryMs = FIRST_RETRY_MS; !signal.aborted; retryMs = Math.min(retryMs * 2, MAX_RETRY_MS)) {
      if (await attempt()) return;
      await sleep(retryMs, undefined, { ref: false, signal }).catch(() => {});
    }
  }

  /**
   * Drains the directories of dead processes. DATA_DIR belongs to one instance with one process per worker number, so
   * every other directory of this worker number is orphaned. One that cannot be read does not stop the others.
   */
  private async drainDeadRuns(): Promise<boolean> {
    let done = true;
    const folders = await runDirectories(this.journal.root).catch((error: unknown) => this.report(error));
    for (const folder of folders ?? []) {
      if (folder === this.journal.runDirectory || drainerOf(folder, this.env.workers) !== this.env.worker)
        continue;
      try {
        if (!(await this.drainDead(folder))) done = false;
      } catch (error) {
        this.report(error);
        done = false;
      }
    }
    return (await this.removeAbandonedReserves()) && done && folders !== null;
  }

  /** Removes the reserves of killed workers whose numbers no longer exist. */
  private async removeAbandonedReserves(): Promise<boolean> {
    if (this.env.worker !== 1) return true;
    try {
      for (const path of await abandonedReserves(this.journal.root, this.env.workers)) await rm(path);
      return true;
    } catch (error) {
      this.report(error);
      return false;
    }
  }

  /**
   * Writes the rows of a dead run that Postgres does not have, or has lost. From then on its files are kept as those of this
   * run, whose batches have acknowledged these rows.
   *
   * @returns true if every row is in Postgres
   */
  private async drainDead(folder: string): Promise<boolean> {
    const { journal, writer, lost } = this;
    const run = runOf(folder);
    await this.kept.find(folder, lost);
    const needed = journal.kept.held(run);
    const files = [...needed, ...(await numberedFiles(folder))].sort((a, b) => a.number - b.number);
    const paths = files.map(({ path }) => path);
    if (needed.length === 0) {
      // Rows that were acknowledged and lost may all be in files that had not been finished yet.
      const claims = await lost.prepare(paths, NONE);
      if (claims > 0) await lost.record({ claims });
      if (!(await this.drainFiles(paths))) return false;
    } else {
      const claims = await lost.prepare(paths, NONE);
      await lost.cursorsPassed(this.stopping.signal);
      const result = await lost.putBack(paths, NONE);
      if (result === null) return false;
      this.logger.log(`${result.rows} rows that Postgres had lost were put back from ${folder}.`);
      await lost.record({ ...result, claims });
    }
    // First the charges of its calls, then what it held for them: in between, budgets count too much, not too little.
    await writer.forgetHolds(run);
    // The next one that is counted: every row is in Postgres before it.
    const seq = this.regressions.acknowledged + 1n;
    for (const { path } of files) journal.adopt(path, (await stat(path)).size, seq);
    for (const file of needed) journal.kept.remove(file);
    if (journal.kept.of(run).length === 0) await rm(folder, { recursive: true });
    return true;
  }

  /** Holds on to what earlier runs of this process have kept and Postgres has lost. */
  private hold({ runs }: Regression): void {
    for (const [run, { surviving }] of runs)
      if (run !== this.regressions.run) this.journal.kept.hold(run, BigInt(surviving));
  }

  /** The drain records what it puts back. @throws errors of Postgres and of the disk, but not those of other folders */
  private async putBackDead(regression: Regression): Promise<PutBack> {
    this.hold(regression);
    const isHeld = (run: string) => run !== this.regressions.run && this.journal.kept.held(run).length > 0;
    const runs = [...regression.runs.keys()].filter(isHeld);
    const isDone = await this.oneAtATime(async () => {
      // Another attempt may have put back some meanwhile.
      const folders = runs.some(isHeld) ? await runDirectories(this.journal.root) : [];
      for (const folder of folders.filter((each) => runs.includes(runOf(each)) && isHeld(runOf(each))))
        if (!(await this.drainDead(folder))) return false;
      return true;
    });
    if (!isDone) throw new Error('this process is stopping');
    return {};
  }

  /** @returns true if every row of the files is in Postgres */
  private async drainFiles(paths: readonly string[]): Promise<boolean> {
    let corrupt = 0;
    for await (const rows of readDeadRows(paths, (count) => (corrupt += count))) {
      if (!(await this.writer.persist(rows, false))) return false;
      this.counts.drained += rows.length;
      this.counts.interrupted += rows.filter((row) => row.outcome === 'interrupted').length;
    }
    this.counts.corrupt += corrupt;
    if (corrupt > 0) this.logger.warn(`${corrupt} damaged records of the journal were skipped.`);
    return true;
  }

  private async readSpilledBack(): Promise<boolean> {
    const due = () => this.journal.spilledFiles().filter((file) => this.writer.future.isDue(file));
    try {
      for (let files = due(); files.length > 0; files = due()) {
        for (const file of files) if (!(await this.readBack(file))) return false;
      }
      return true;
    } catch (error) {
      this.report(error);
      return false;
    }
  }

  /** Nothing is appended to the file any more, so that its rows have the same order at each attempt. */
  private async readBack(file: JournalFile): Promise<boolean> {
    let skip = file.readBack;
    for await (const rows of readSpilledRows(file.path, (count) => (this.counts.corrupt += count))) {
      const rest = rows.slice(skip);
      skip -= rows.length - rest.length;
      if (rest.length === 0) continue;
      if (!(await this.writer.persist(rest, true))) return false;
      this.counts.drained += rest.length;
      this.journal.unspill(file, rest.length, this.writer.acknowledged);
    }
    if (file.spilled > 0) {
      this.logger.fatal(`${file.spilled} rows are lost: ${file.path} was damaged after it was written.`);
      this.writer.countLost(file.spilled);
      this.journal.unspill(file, file.spilled, 0n);
    }
    this.writer.future.remove(file);
    return true;
  }

  private report(error: unknown): null {
    this.logger.error(`The journal could not be read, trying again: ${describeError(error)}`);
    return null;
  }
}
