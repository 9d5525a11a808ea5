import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { describeError } from '../../errors/describe-error.js';
import { DatabaseService } from '../../database/database.service.js';
import { runDirectories, abandonedReserves, drainerOf, logFiles, runOf } from './run-directories.js';
import { Journal } from './journal.js';
import type { JournalFile } from './journal-file.js';
import { readDeadRows, readSpilledRows } from './recovery.js';
import { LogWriter } from '../writer/log-writer.js';

const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 60_000;

/** Writes rows to Postgres that are only in the journal: calls of dead processes, and rows spilled during an outage. */
@Injectable()
export class JournalDrainService implements OnApplicationShutdown {
  /** Since the start: damaged records skipped, calls recorded as interrupted, rows written from files. */
  readonly counts = { corrupt: 0, interrupted: 0, drained: 0 };
  private readonly logger = new Logger('Journal');
  private readonly stopping = new AbortController();
  private deadRuns: Promise<void> | null = null;
  private spilledRows: Promise<void> | null = null;

  constructor(
    private readonly journal: Journal,
    private readonly writer: LogWriter,
    @InjectSettings() private readonly env: Settings,
    database: DatabaseService,
  ) {
    database.whenReady(() => {
      // In the background: calls are served meanwhile. Once, however often a start is attempted.
      this.deadRuns ??= this.untilDone(() => this.drainDeadRuns());
      return Promise.resolve();
    });
    writer.whenCaughtUp(() => {
      this.spilledRows ??= this.untilDone(() => this.readSpilledBack()).finally(
        () => (this.spilledRows = null),
      );
    });
  }

  onApplicationShutdown(): void {
    this.stopping.abort();
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
        if (await this.drainDead(await logFiles(folder))) {
          // First the charges of its calls, then what it held for them: in between, budgets count too much, not too little.
          await this.writer.forgetHolds(runOf(folder));
          await rm(folder, { recursive: true });
        } else done = false;
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

  /** @returns true if every row of the files is in Postgres */
  private async drainDead(paths: readonly string[]): Promise<boolean> {
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
      this.journal.unspill(file, rest.length);
    }
    if (file.spilled > 0) {
      this.logger.fatal(`${file.spilled} rows are lost: ${file.path} was damaged after it was written.`);
      this.writer.countLost(file.spilled);
      this.journal.unspill(file, file.spilled);
    }
    this.writer.future.remove(file);
    return true;
  }

  private report(error: unknown): null {
    this.logger.error(`The journal could not be read, trying again: ${describeError(error)}`);
    return null;
  }
}
