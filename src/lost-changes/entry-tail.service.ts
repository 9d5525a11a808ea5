import { join } from 'node:path';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import type { ClientBase } from 'pg';
import { byTime, ENTRIES_AT_ONCE, ENTRIES_CHANNEL, type EntryRow, readEntries } from '../audit/entry-rows.js';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { ChangeFeed } from '../database/change-feed.js';
import { KnownEnds } from '../database/known-ends/known-ends.js';
import { describeError } from '../errors/describe-error.js';
import { ProcessRun } from '../regressions/process-run.js';
import { runDirectoryName } from '../request-log/journal/run-directories.js';
import { endsOf, startsOf } from './end-of.js';
import { KeptEntries, type KeptEntry } from './kept-entries.js';

/** For transactions that take so long. */
const OVERLAP_S = 60;
/** Entries in memory; with older ones they are in files. */
const MOST_IN_MEMORY = 10_000;
/** Between two reads that notifications ask for. */
const PAUSE_MS = 200;

/** The folder of DATA_DIR with the entries of each process run. */
export const KEPT_FOLDER = 'kept';

/** An entry that this process has read. */
export interface KnownEntry {
  /** The row as JSON. */
  readonly entry: string;
  readonly row: EntryRow;
}

/**
 * Reads each entry of the audit log soon after it was written, tells KnownEnds what it has ended, and keeps it for
 * JOURNAL_KEEP_MS: Postgres may be replaced by a server that does not have it.
 */
@Injectable()
export class EntryTail implements OnApplicationShutdown {
  /** Of its own run. */
  readonly folder: string;
  private readonly logger = new Logger('Audit');
  private readonly files: KeptEntries;
  /** By ID, and when they were read (ms since 1970, of Postgres's clock). */
  private readonly entries = new Map<string, { entry: string; readAt: number }>();
  /** IDs of entries that the next read may find again. */
  private readonly seen = new Map<string, number>();
  /** Those that are not in a file yet. */
  private unsaved: KeptEntry[] = [];
  private lastRead: string | null = null;
  /** Nothing is removed while it is unknown whether the server has all of them. */
  private isHeld = false;
  /** Nothing that was read so far counts any more. */
  private isForgotten = false;
  private errorLogged = false;
  private limitLogged = false;
  private pause: NodeJS.Timeout | undefined;
  private isAskedAgain = false;

  constructor(
    private readonly feed: ChangeFeed,
    private readonly ends: KnownEnds,
    @InjectSettings() private readonly env: Settings,
    run: ProcessRun,
  ) {
    this.folder = join(env.dataDir, KEPT_FOLDER, runDirectoryName(run.id, env.worker));
    this.files = new KeptEntries(this.folder);
    feed.onPoll('The audit log', (client) => this.read(client));
    feed.listen(ENTRIES_CHANNEL, () => this.readSoon());
  }

  onApplicationShutdown(): void {
    this.isAskedAgain = false;
    clearTimeout(this.pause);
  }

  /** Keeps everything until release(). */
  hold(): void {
    this.isHeld = true;
  }

  /** The server has everything. */
  release(): void {
    this.isHeld = false;
  }

  /** What was read and the server does not have is not wanted there: the next poll reads what it has. */
  forget(): void {
    this.isHeld = false;
    this.isForgotten = true;
  }

  /** All entries that are kept, with those of files, in the order in which they were recorded. @throws the system's error */
  async all(): Promise<KnownEntry[]> {
    if (this.isForgotten) return [];
    const all = new Map((await this.files.read()).map(({ id, entry }) => [id, entry]));
    for (const [id, { entry }] of this.entries) all.set(id, entry);
    return readKnown(all.values());
  }

  /** @param isAll however many there are */
  learn(entries: readonly EntryRow[], isAll = false): void {
    for (const entry of entries) {
      for (const end of endsOf(entry)) {
        if (end.kind === 'final') this.ends.end(end.id, isAll);
        else this.ends.stop(end.id, end.setting, end.since, isAll);
      }
      for (const { id, setting } of startsOf(entry)) this.ends.start(id, setting);
    }
  }

  /** At once, but not all the time. */
  private readSoon(): void {
    if (this.pause !== undefined) {
      this.isAskedAgain = true;
      return;
    }
    this.feed.poll(false);
    this.pause = setTimeout(() => {
      this.pause = undefined;
      if (this.isAskedAgain) this.readSoon();
    }, PAUSE_MS);
    this.isAskedAgain = false;
  }

  private async beginAgain(): Promise<void> {
    await this.files.clear();
    this.entries.clear();
    this.seen.clear();
    this.unsaved = [];
    this.lastRead = null;
    this.isForgotten = false;
  }

  private async read(client: ClientBase): Promise<void> {
    if (this.isForgotten) await this.beginAgain();
    for (;;) {
      const overlapS = this.lastRead === null ? this.env.journalKeepMs / 1_000 : OVERLAP_S;
      const found = await readEntries(client, this.lastRead, overlapS, [...this.seen.keys()]);
      const { now_ms: now } = found;
      const rows = found.entries.map((entry) => ({ entry, row: JSON.parse(entry) as EntryRow }));
      this.learn(rows.map(({ row }) => row).sort(byTime));
      for (const { entry, row } of rows) {
        this.seen.set(row.id, now);
        this.entries.set(row.id, { entry, readAt: now });
        this.unsaved.push({ id: row.id, entry });
      }
      const isLast = rows.length < ENTRIES_AT_ONCE;
      await this.keep(now, isLast);
      if (!isLast) continue;
      // All that this process knows comes from this server.
      if (this.lastRead === null) this.ends.confirm(found.server);
      this.lastRead = found.now;
      return;
    }
  }

  private async keep(now: number, isLast: boolean): Promise<void> {
    const since = now - this.env.journalKeepMs;
    if (isLast) for (const [id, at] of this.seen) if (at < now - OVERLAP_S * 1_000) this.seen.delete(id);
    for (const [id, { readAt }] of this.entries) {
      if ((this.isHeld || readAt >= since) && this.entries.size <= MOST_IN_MEMORY) break;
      this.entries.delete(id);
    }
    try {
      if (this.unsaved.length > 0 && this.env.journalKeepMs > 0) await this.files.append(this.unsaved, now);
      this.unsaved = [];
      const isTooLarge = await this.files.removeBefore(this.isHeld ? -Infinity : since);
      if (isTooLarge && !this.limitLogged)
        this.logger.warn(
          `There are more entries of the audit log than are kept in ${this.folder}: if Postgres loses the older ones, they may not be put back.`,
        );
      this.limitLogged = isTooLarge;
      this.errorLogged = false;
    } catch (error) {
      this.unsaved = this.unsaved.slice(-MOST_IN_MEMORY);
      if (!this.errorLogged)
        this.logger.error(
          `Entries of the audit log cannot be kept in ${this.folder}; if this process ends and Postgres loses them, they are lost: ${describeError(error)}`,
        );
      this.errorLogged = true;
    }
  }
}

/** @param entries as JSON @returns in the order in which they were recorded */
export function readKnown(entries: Iterable<string>): KnownEntry[] {
  const known = [...entries].map((entry) => ({ entry, row: JSON.parse(entry) as EntryRow }));
  return known.sort((a, b) => byTime(a.row, b.row));
}
