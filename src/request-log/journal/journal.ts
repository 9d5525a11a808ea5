import { join } from 'node:path';
import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { describeError } from '../../errors/describe-error.js';
import { patience, withTimeout } from '../../platform/patience.js';
import { ProcessRun } from '../../regressions/process-run.js';
import { DiskHealth, isFull } from './disk-health.js';
import type { JournalFile } from './journal-file.js';
import { JournalSync } from './journal-sync.js';
import { KeptFiles } from './kept-files.js';
import { encodeLine, encodeLines, type JournalRecord, lineLength } from './record-codec.js';
import { reserveName, runDirectoryName, runOf } from './run-directories.js';
import { RunDirectory } from './run-directory.js';

const ROTATE_BYTES = 8 * 1024 * 1024;
const ROTATE_MS = 60_000;
/** If no new file can be created, the old one is used for this many more bytes before the next attempt. */
const ROTATE_RETRY_BYTES = 1024 * 1024;
const TICK_MS = 1_000;
/** With JOURNAL_FSYNC_MS=0 calls wait for the sync of start and end records; later records are synced at this interval. */
const STRICT_BACKGROUND_MS = 100;
/** Unsynced records are held in memory: above this limit no new call is accepted. */
const MAX_UNSYNCED_BYTES = 64 * 1024 * 1024;
/** Limit for the sync at shutdown: a disk that hangs must not block it. */
const CLOSE = patience('the sync of the journal at a stop', 2_000);

/** An empty record, which shows that a file can be written. */
const BLANK_LINE = Buffer.from('\n');

/** A record to be appended in a batch. */
export interface Entry {
  readonly json: string;
  /** The start record of a call must not use the disk space that is reserved for end records. */
  readonly isStart: boolean;
  /** Called with the file that contains the record, which must be released once for it. */
  written(file: JournalFile): void;
  failed(error: unknown): void;
}

/**
 * The journal of the request log: the records of a call reach the operating system before the call goes on, so that no
 * row is lost however this process dies. One directory for each process run, created exclusively. A file that exists is
 * simply not drained yet; there is no other bookkeeping.
 */
@Injectable()
export class Journal implements OnModuleInit {
  /** Contains the directories of all runs. */
  readonly root: string;
  readonly runDirectory: string;
  readonly strict: boolean;
  /** Finished files of this process run. */
  readonly kept: KeptFiles;
  private readonly logger = new Logger('Journal');
  private readonly directory: RunDirectory;
  private readonly health: DiskHealth;
  private readonly commits: JournalSync;
  /** Files with rows that may have to be put back: each is held once for that. */
  private readonly held = new Set<JournalFile>();
  private rotateAt = ROTATE_BYTES;
  /** There is disk space, and the last write succeeded. */
  private writable = true;
  private tickTimer: NodeJS.Timeout | null = null;
  /** Until the next sync in the background; null while everything is on the disk, so that an idle process sleeps. */
  private syncTimer: NodeJS.Timeout | null = null;
  private readonly syncMs: number;

  constructor(@InjectSettings() env: Settings, run: ProcessRun = new ProcessRun()) {
    this.root = join(env.dataDir, 'journal');
    this.runDirectory = join(this.root, runDirectoryName(run.id, env.worker));
    this.strict = env.journalFsyncMs === 0;
    this.syncMs = this.strict ? STRICT_BACKGROUND_MS : env.journalFsyncMs;
    this.kept = new KeptFiles(this.runDirectory, {
      keepMs: env.journalKeepMs,
      keepBytes: env.journalKeepBytes,
    });
    this.directory = new RunDirectory(this.runDirectory, this.kept);
    const reserve = join(this.root, reserveName(env.worker));
    this.health = new DiskHealth(this.logger, env.dataDir, reserve, () => this.makeSpace());
    this.commits = new JournalSync(this.directory, this.health, () => (this.rotateAt = ROTATE_BYTES));
  }

  onModuleInit(): void {
    try {
      this.directory.open();
    } catch (error) {
      // Space on a full disk may be freed: calls get 503 until then.
      if (!isFull(error)) throw error;
    }
    this.tick();
    this.tickTimer = setInterval(() => this.tick(), TICK_MS).unref();
  }

  /** Why the journal does not keep all its guarantees right now; null if it does. For health and metrics. */
  get degraded(): string | null {
    return this.health.gravest;
  }

  /** Whether new calls may begin. */
  get accepting(): boolean {
    if (!this.writable || this.directory.unsyncedBytes > MAX_UNSYNCED_BYTES) return false;
    // Their responses would wait for a disk that does not sync.
    return !(this.strict && this.health.has('sync'));
  }

  /** Bytes in the files of this process run. */
  get bytes(): number {
    let sum = 0;
    for (const file of this.directory) sum += file.size;
    return sum;
  }

  /** Milliseconds since the oldest file that is still needed was created; 0 without one. */
  get oldestMs(): number {
    for (const file of this.directory) {
      // What is held for put-back waits for nothing in Postgres.
      const needed = file.held + file.spilled - Number(this.held.has(file));
      if (needed > 0) return performance.now() - file.openedAt;
    }
    return 0;
  }

  /** Appends a record, as appendLines does. */
  append(record: JournalRecord): JournalFile {
    return this.appendLines(encodeLine(record), 1, record.t !== 'B');
  }

  /**
   * Appends `count` encoded records in one write.
   *
   * @param mayUseReserve false for start records
   * @returns the file that contains them, to be released once for each when the call's row is in Postgres
   * @throws the system's error if they can be written neither to the current file nor to a new one
   */
  appendLines(lines: Buffer, count: number, mayUseReserve: boolean): JournalFile {
    try {
      const file = this.write(lines, mayUseReserve);
      file.held += count;
      if (this.writable) this.health.recovered('write');
      return file;
    } catch (error) {
      // Until the next check of the disk: each start record would only leave another torn record.
      if (isFull(error) || !mayUseReserve) this.writable = false;
      this.health.report('write', error);
      throw error;
    }
  }

  /**
   * Appends records in one write and reports to each, in order, whether it was written. If the write fails in the middle,
   * its complete records count as written, because the next start would read them; the others are retried one by one.
   */
  appendBatch(entries: readonly Entry[]): void {
    const some = this.appendSome(encodeLines(entries.map(({ json }) => json)));
    let count = 0;
    if (some !== null) {
      let end = 0;
      while (count < entries.length && (end += lineLength(entries[count]!.json)) <= some.bytes) count++;
      // Before the first call goes on and releases the file.
      some.file.held += count;
    }
    entries.forEach((entry, i) => {
      if (i < count) entry.written(some!.file);
      else this.appendEntry(entry);
    });
  }

  private appendEntry(entry: Entry): void {
    let file: JournalFile;
    try {
      if (entry.isStart && !this.accepting) throw new Error('the journal accepts no new calls');
      file = this.appendLines(encodeLines([entry.json]), 1, !entry.isStart);
    } catch (error) {
      entry.failed(error);
      return;
    }
    entry.written(file);
  }

  /** Appends records to the current file in one write. @returns how many bytes of complete records were written */
  private appendSome(lines: Buffer): { file: JournalFile; bytes: number } | null {
    const file = this.directory.active;
    if (file === null || file.size >= this.rotateAt) return null;
    this.syncLater();
    try {
      file.append(lines);
      if (this.writable) this.health.recovered('write');
    } catch (error) {
      // The records that are left are tried again one by one.
      if (isFull(error) && this.makeSpace()) return { file, bytes: file.taken };
      this.health.report('write', error);
      // Space that can be freed is for end records. Any other error: the file may lie on bad blocks.
      if (isFull(error)) this.writable = false;
      else this.rotateAt = 0;
    }
    return { file, bytes: file.taken };
  }

  /** Settles when everything appended so far is on the disk; calls that wait at the same time share one sync. */
  sync(): Promise<void> {
    return this.commits.wait();
  }

  /** Releases records of a call whose row is in Postgres. @param seq the one of this process run that acknowledged it */
  acknowledge(files: readonly JournalFile[], seq: bigint): void {
    for (const file of files) if (seq > file.acknowledgedBy) file.acknowledgedBy = seq;
    this.release(files);
  }

  /** Releases records that are no longer needed: the row is whole in another record, or was rejected. */
  release(files: readonly JournalFile[]): void {
    for (const file of files) {
      file.held--;
      this.discardIfDone(file);
    }
  }

  /**
   * Holds what may have a record of a row that a later batch than this one acknowledged, until `releaseHeld()`: nothing of
   * it is moved, deleted or appended to. Calling it again adds to it.
   *
   * @param seq the last one that Postgres has of this run
   * @returns paths of files, in the order in which they were written
   * @throws the system's error if no new file can be created
   */
  holdAbove(seq: bigint): string[] {
    // Before anything is moved, which may delete the oldest kept file.
    const kept = this.kept.hold(runOf(this.runDirectory), seq);
    for (const file of this.directory) {
      if (file.size === 0 || this.held.has(file)) continue;
      file.held++;
      this.held.add(file);
    }
    if ((this.directory.active?.size ?? 0) > 0) this.rotate();
    return [...kept, ...this.held].sort((a, b) => a.number - b.number).map(({ path }) => path);
  }

  /** What was held is no longer needed. @param seq the one that has acknowledged its rows again; 0: none has */
  releaseHeld(seq: bigint): void {
    const held = [...this.held];
    this.held.clear();
    this.acknowledge(held, seq);
    this.kept.release(runOf(this.runDirectory));
  }

  /**
   * Makes a file of a dead run a kept one of this run: its rows are in Postgres.
   *
   * @param seq the one of this run that acknowledged the last of them
   * @throws the system's error; the file is then where it was
   */
  adopt(path: string, bytes: number, seq: bigint): void {
    this.directory.adopt(path, bytes, seq);
  }

  /** Marks the row just appended to this file as spilled: it is not in memory and must be read back. */
  spill(file: JournalFile): void {
    file.held--;
    file.spilled++;
  }

  /** Files that hold spilled rows, oldest first; nothing is appended to them any more. */
  spilledFiles(): JournalFile[] {
    if ((this.directory.active?.spilled ?? 0) > 0) this.rotate();
    return [...this.directory].filter((file) => file.spilled > 0);
  }

  /** Marks the next `count` spilled rows of this file as read back. @param seq the one that acknowledged them */
  unspill(file: JournalFile, count: number, seq: bigint): void {
    if (seq > file.acknowledgedBy) file.acknowledgedBy = seq;
    file.spilled -= count;
    file.readBack += count;
    this.discardIfDone(file);
  }

  /** Syncs, and removes files that are no longer needed; the others stay for the next start. */
  async close(): Promise<void> {
    if (this.tickTimer !== null) clearInterval(this.tickTimer);
    if (this.syncTimer !== null) clearTimeout(this.syncTimer);
    await withTimeout(CLOSE.ms, this.sync());
    this.health.freeReserve();
    try {
      this.directory.close();
    } catch (error) {
      // The next start removes what is left.
      this.logger.debug(describeError(error));
    }
  }

  private write(lines: Buffer, mayUseReserve: boolean): JournalFile {
    this.syncLater();
    if ((this.directory.active?.size ?? 0) >= this.rotateAt) this.tryToRotate();
    for (let isTried = false; !isTried;) {
      try {
        const file = this.directory.active ?? this.rotate();
        file.append(lines);
        return file;
      } catch (error) {
        if (isFull(error) && this.makeSpace()) continue;
        isTried = true;
        this.health.report('write', error);
        if (isFull(error)) {
          // The reserve is for calls in progress; a new one is rejected instead.
          if (!mayUseReserve) throw error;
          this.health.freeReserve();
        }
      }
    }
    // The old file may lie on bad blocks, or no new one can be created: use the one that can be written.
    this.tryToRotate();
    const file = this.directory.active ?? this.rotate();
    file.append(lines);
    return file;
  }

  /** Syncs what is about to be appended, and names of files that have changed, once the interval is over. */
  private syncLater(): void {
    this.syncTimer ??= setTimeout(() => {
      this.syncTimer = null;
      this.commits.syncInBackground();
    }, this.syncMs).unref();
  }

  private tick(): void {
    const before = this.writable;
    this.writable = this.hasSpace() && this.isWritable();
    if (this.writable && !before)
      this.logger.log('The journal can be written again; new calls are accepted.');
    const { active } = this.directory;
    if (active !== null && active.size > 0 && performance.now() - active.openedAt > ROTATE_MS) {
      this.tryToRotate();
    }
    this.health.attempt('remove', () => {
      this.directory.discardDone();
      this.kept.prune();
    });
    if (this.directory.dirty) this.syncLater();
  }

  /** Deletes the oldest kept file. @returns false if there is none, or it cannot be deleted */
  private makeSpace(): boolean {
    try {
      return this.kept.makeSpace();
    } catch (error) {
      this.health.report('remove', error);
      return false;
    }
  }

  private hasSpace(): boolean {
    return this.health.attempt('space', () => {
      this.directory.open();
      this.health.checkSpace();
    });
  }

  /** A read-only or broken disk still reports free space: only a write shows that it accepts one. */
  private isWritable(): boolean {
    return !this.health.has('write') || this.health.attempt('write', () => this.write(BLANK_LINE, false));
  }

  private rotate(): JournalFile {
    const old = this.directory.active;
    const next = this.directory.rotate();
    this.rotateAt = ROTATE_BYTES;
    if (old !== null) this.discardIfDone(old);
    return next;
  }

  private tryToRotate(): void {
    try {
      this.rotate();
    } catch (error) {
      this.rotateAt = (this.directory.active?.size ?? 0) + ROTATE_RETRY_BYTES;
      this.health.report('write', error);
    }
  }

  private discardIfDone(file: JournalFile): void {
    try {
      this.directory.discardIfDone(file);
    } catch (error) {
      // Retried at the next tick. If the next start reads the file, its rows are already in Postgres.
      this.health.report('remove', error);
    }
  }
}
