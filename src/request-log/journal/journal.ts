import { join } from 'node:path';
import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { v7 as uuidv7 } from 'uuid';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { describeError } from '../../errors/describe-error.js';
import { withTimeout } from '../../platform/with-timeout.js';
import { DiskHealth, isFull } from './disk-health.js';
import type { JournalFile } from './journal-file.js';
import { JournalSync } from './journal-sync.js';
import { encodeLine, encodeLines, type JournalRecord, lineLength } from './record-codec.js';
import { reserveName, runDirectoryName } from './run-directories.js';
import { RunDirectory } from './run-directory.js';

const ROTATE_BYTES = 8 * 1024 * 1024;
const ROTATE_MS = 60_000;
/** Where no new file can be made, the old one goes on; the next attempt comes this much later. */
const ROTATE_AGAIN_BYTES = 1024 * 1024;
const TICK_MS = 1_000;
/** With JOURNAL_FSYNC_MS=0 the wire waits for beginnings and ends; what is written after the end is synced behind. */
const STRICT_BEHIND_MS = 100;
/** Lines waiting for a disk that does not sync any more are held in memory: past this no new call is taken. */
const MOST_UNSYNCED_BYTES = 64 * 1024 * 1024;
/** A disk that hangs must not keep the process from ending. */
const CLOSE_MS = 2_000;

/** Says nothing; shows that a file takes lines. */
const BLANK_LINE = Buffer.from('\n');

/** A record that is to be appended together with others. */
export interface Entry {
  readonly json: string;
  /** The beginning of a call must not use the room that is reserved for ends. */
  readonly isBeginning: boolean;
  /** Called with the file that holds the line, which must be released once for it. */
  kept(file: JournalFile): void;
  refused(error: unknown): void;
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
  private readonly logger = new Logger('Journal');
  private readonly directory: RunDirectory;
  private readonly health: DiskHealth;
  private readonly commits: JournalSync;
  private rotateAt = ROTATE_BYTES;
  /** There is room, and the last write succeeded. */
  private writable = true;
  private timers: NodeJS.Timeout[] = [];

  constructor(@InjectSettings() private readonly env: Settings) {
    this.root = join(env.dataDir, 'journal');
    this.runDirectory = join(this.root, runDirectoryName(uuidv7(), env.worker));
    this.strict = env.journalFsyncMs === 0;
    this.directory = new RunDirectory(this.runDirectory);
    this.health = new DiskHealth(this.logger, env.dataDir, join(this.root, reserveName(env.worker)));
    this.commits = new JournalSync(this.directory, this.health, () => (this.rotateAt = ROTATE_BYTES));
  }

  onModuleInit(): void {
    try {
      this.directory.open();
    } catch (error) {
      // A full disk may have room again: calls get 503 until then.
      if (!isFull(error)) throw error;
    }
    this.tick();
    const behindMs = this.strict ? STRICT_BEHIND_MS : this.env.journalFsyncMs;
    this.timers = [
      setInterval(() => this.tick(), TICK_MS),
      setInterval(() => this.commits.syncBehind(), behindMs),
    ];
    for (const timer of this.timers) timer.unref();
  }

  /** Why the journal does not do all it promises right now; null when it does. For health and metrics. */
  get degraded(): string | null {
    return this.health.gravest;
  }

  /** Whether new calls may begin. */
  get accepting(): boolean {
    if (!this.writable || this.directory.unsyncedBytes > MOST_UNSYNCED_BYTES) return false;
    // Their answers would wait for a disk that does not sync.
    return !(this.strict && this.health.has('sync'));
  }

  /** Bytes in the files of this boot. */
  get bytes(): number {
    let sum = 0;
    for (const file of this.directory) sum += file.size;
    return sum;
  }

  /** Milliseconds since the oldest file that is still needed was begun; 0 without one. */
  get oldestMs(): number {
    for (const file of this.directory)
      if (file.held + file.parked > 0) return performance.now() - file.openedAt;
    return 0;
  }

  /** Appends a record, as appendLines does. */
  append(record: JournalRecord): JournalFile {
    return this.appendLines(encodeLine(record), 1, record.t !== 'B');
  }

  /**
   * Appends the lines of so many records in one write.
   *
   * @param mayUseReserve false for the beginnings of calls
   * @returns the file that holds them, to be let go of once for each when the call's row is in Postgres
   * @throws the system's error when neither the current file nor a new one takes them
   */
  appendLines(lines: Buffer, count: number, mayUseReserve: boolean): JournalFile {
    try {
      const file = this.write(lines, mayUseReserve);
      file.held += count;
      if (this.writable) this.health.recovered('write');
      return file;
    } catch (error) {
      // Until the next look at the disk: each beginning would only tear another line.
      if (isFull(error) || !mayUseReserve) this.writable = false;
      this.health.report('write', error);
      throw error;
    }
  }

  /**
   * Appends records in one write and reports to each, in their order, whether it was kept. If the write fails in the
   * middle, the whole lines of it stand, because the next start would read them; the others are tried one by one.
   */
  appendTogether(entries: readonly Entry[]): void {
    const some = this.appendSome(encodeLines(entries.map(({ json }) => json)));
    let count = 0;
    if (some !== null) {
      let end = 0;
      while (count < entries.length && (end += lineLength(entries[count]!.json)) <= some.bytes) count++;
      // Before the first call goes on and releases the file.
      some.file.held += count;
    }
    entries.forEach((entry, i) => {
      if (i < count) entry.kept(some!.file);
      else this.appendEntry(entry);
    });
  }

  private appendEntry(entry: Entry): void {
    let file: JournalFile;
    try {
      if (entry.isBeginning && !this.accepting) throw new Error('the journal accepts no new calls');
      file = this.appendLines(encodeLines([entry.json]), 1, !entry.isBeginning);
    } catch (error) {
      entry.refused(error);
      return;
    }
    entry.kept(file);
  }

  /** Appends lines in one write, as far as the current file takes them. @returns how many bytes of whole lines it took */
  private appendSome(lines: Buffer): { file: JournalFile; bytes: number } | null {
    const file = this.directory.active;
    if (file === null || file.size >= this.rotateAt) return null;
    try {
      file.append(lines);
      if (this.writable) this.health.recovered('write');
    } catch (error) {
      this.health.report('write', error);
      // What room can be made is for ends. Any other error: the file may lie on bad blocks.
      if (isFull(error)) this.writable = false;
      else this.rotateAt = 0;
    }
    return { file, bytes: file.taken };
  }

  /** Settles when everything appended so far is on the disk; calls that wait at the same time share one sync. */
  sync(): Promise<void> {
    return this.commits.wait();
  }

  /** A call's row is in Postgres, or whole in another line: its lines are no longer needed. */
  release(files: readonly JournalFile[]): void {
    for (const file of files) {
      file.held--;
      this.discardIfDone(file);
    }
  }

  /** The row just appended here is given up in memory and waits to be read back. */
  park(file: JournalFile): void {
    file.held--;
    file.parked++;
  }

  /** Files that hold parked rows, oldest first; nothing is appended to them any more. */
  parkedFiles(): JournalFile[] {
    if ((this.directory.active?.parked ?? 0) > 0) this.rotate();
    return [...this.directory].filter((file) => file.parked > 0);
  }

  /** The next parked rows of this file, so many, are cared for. */
  unpark(file: JournalFile, count: number): void {
    file.parked -= count;
    file.readBack += count;
    this.discardIfDone(file);
  }

  /** Syncs, and removes what is no longer needed; what is needed stays for the next start. */
  async close(): Promise<void> {
    for (const timer of this.timers) clearInterval(timer);
    await withTimeout(CLOSE_MS, this.sync());
    this.health.freeReserve();
    try {
      this.directory.close();
    } catch (error) {
      // What is left over costs little and goes with the next start.
      this.logger.debug(describeError(error));
    }
  }

  private write(lines: Buffer, mayUseReserve: boolean): JournalFile {
    if ((this.directory.active?.size ?? 0) >= this.rotateAt) this.tryToRotate();
    try {
      const file = this.directory.active ?? this.rotate();
      file.append(lines);
      return file;
    } catch (error) {
      this.health.report('write', error);
      if (isFull(error)) {
        // The reserve is for calls in flight; a new one is refused instead.
        if (!mayUseReserve) throw error;
        this.health.freeReserve();
      }
    }
    // The old file may lie on bad blocks, or no new one can be made: whichever takes the lines, whole.
    this.tryToRotate();
    const file = this.directory.active ?? this.rotate();
    file.append(lines);
    return file;
  }

  private tick(): void {
    const before = this.writable;
    this.writable = this.hasRoom() && this.takesLines();
    if (this.writable && !before) this.logger.log('The journal can be written again; calls are taken.');
    const { active } = this.directory;
    if (active !== null && active.size > 0 && performance.now() - active.openedAt > ROTATE_MS) {
      this.tryToRotate();
    }
    this.health.attempt('remove', () => this.directory.discardDone());
  }

  private hasRoom(): boolean {
    return this.health.attempt('space', () => {
      this.directory.open();
      this.health.checkRoom();
    });
  }

  /** A read-only or broken disk still reports free space: only a write shows that it accepts one. */
  private takesLines(): boolean {
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
      this.rotateAt = (this.directory.active?.size ?? 0) + ROTATE_AGAIN_BYTES;
      this.health.report('write', error);
    }
  }

  private discardIfDone(file: JournalFile): void {
    try {
      this.directory.discardIfDone(file);
    } catch (error) {
      // Tried again with the next tick; read by the next start, it would only repeat what Postgres knows.
      this.health.report('remove', error);
    }
  }
}
