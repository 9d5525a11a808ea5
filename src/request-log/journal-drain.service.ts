import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { describeFault } from '../database/database-fault.js';
import { DatabaseService } from '../database/database.service.js';
import { Journal } from './journal.js';
import { readRows } from './journal-reader.js';
import { LogWriter } from './log-writer.js';

/** A boot's folder, named by a UUID; `rejected/` lies beside them and is left alone. */
const BOOT = /^[0-9a-f]{8}-[0-9a-f-]{27}$/;

/** Brings to Postgres what only the journal knows: calls of processes that died, and rows parked while it was away. */
@Injectable()
export class JournalDrainService implements OnApplicationShutdown {
  /** Since the start: damaged lines skipped, calls found cut off, rows brought from files. */
  readonly counts = { corrupt: 0, interrupted: 0, drained: 0 };
  private readonly logger = new Logger('Journal');
  private stopped = false;
  private readingBack = false;

  constructor(
    private readonly journal: Journal,
    private readonly writer: LogWriter,
    database: DatabaseService,
  ) {
    database.whenReady(() => {
      // Behind the start: calls are served meanwhile.
      void this.drainDeadBoots();
      return Promise.resolve();
    });
    writer.onCaughtUp = () => void this.readParkedBack();
  }

  onApplicationShutdown(): void {
    this.stopped = true;
  }

  /** Folders of boots that are gone: DATA_DIR is held by one instance, so every folder but our own is one. */
  private async drainDeadBoots(): Promise<void> {
    try {
      for (const name of await readdir(this.journal.root)) {
        const folder = join(this.journal.root, name);
        if (!BOOT.test(name) || folder === this.journal.bootFolder) continue;
        if (!(await this.drain(await logFiles(folder), true))) return;
        await rm(folder, { recursive: true });
      }
    } catch (error) {
      this.logger.error(`The journal of an earlier run could not be read: ${describeFault(error)}`);
    }
  }

  private async readParkedBack(): Promise<void> {
    if (this.readingBack || this.stopped) return;
    this.readingBack = true;
    try {
      const parked = this.journal.parkedFiles();
      const count = this.writer.counts.parked;
      if (parked.size === 0 || !(await this.drain(this.journal.filePaths(), false))) return;
      this.journal.unpark(parked);
      this.writer.counts.parked -= count;
      this.writer.counts.persisted += count;
    } catch (error) {
      this.logger.error(`Parked rows could not be read back: ${describeFault(error)}`);
    } finally {
      this.readingBack = false;
    }
  }

  /** True when every row of the files is in Postgres. */
  private async drain(paths: readonly string[], dead: boolean): Promise<boolean> {
    let corrupt = 0;
    for await (const rows of readRows(paths, { dead, onCorrupt: (count) => (corrupt += count) })) {
      if (this.stopped) return false;
      await this.writer.persist(rows);
      this.counts.drained += rows.length;
      if (dead) this.counts.interrupted += rows.filter((row) => row.outcome === 'interrupted').length;
    }
    this.counts.corrupt += corrupt;
    if (corrupt > 0) this.logger.warn(`${corrupt} damaged lines of the journal were skipped.`);
    return true;
  }
}

/** Journal files of a folder, oldest first: their names are sequence numbers of one width. */
export async function logFiles(folder: string): Promise<string[]> {
  const names = await readdir(folder);
  return names
    .filter((name) => name.endsWith('.log'))
    .sort()
    .map((name) => join(folder, name));
}
