import { join } from 'node:path';
import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { v7 as uuidv7 } from 'uuid';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { describeError } from '../../errors/describe-error.js';
import { bootFolderName, reserveName } from './run-directories.js';
import { GroupCommit } from './group-commit.js';
import { JournalFaults } from './journal-health.js';
import type { JournalFile } from './journal-file.js';
import { JournalFolder } from './run-directory.js';
import { encodeLine, type JournalRecord } from './record-codec.js';
import { isFull, JournalSpace } from './journal-space.js';
import { withTimeout } from '../../platform/with-timeout.js';

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

/**
 * The request log's memory on disk: a call's lines reach the operating system before the call goes on, so that no death
 * of this process loses a row. One folder per boot, created exclusively; a file that is present is simply not drained
 * yet, and there is no other bookkeeping.
 */
@Injectable()
export class Journal implements OnModuleInit {
  /** Where the folders of all boots lie. */
  readonly root: string;
  readonly bootFolder: string;
  readonly strict: boolean;
  private readonly logger = new Logger('Journal');
  private readonly folder: JournalFolder;
  private readonly space: JournalSpace;
  private readonly commits = new GroupCommit(() => this.commit());
  private readonly faults = new JournalFaults(this.logger);
  private rotateAt = ROTATE_BYTES;
  /** There is room, and what was there last took lines. */
  private writable = true;
  private unsyncedBytes = 0;
  private timers: NodeJS.Timeout[] = [];

  constructor(@InjectSettings() private readonly env: Settings) {
    this.root = join(env.dataDir, 'journal');
    this.bootFolder = join(this.root, bootFolderName(uuidv7(), env.worker));
    this.strict = env.journalFsyncMs === 0;
    this.folder = new JournalFolder(this.bootFolder);
    this.space = new JournalSpace(env.dataDir, join(this.root, reserveName(env.worker)));
  }

  onModuleInit(): void {
    try {
      this.folder.open();
    } catch (error) {
      // A full disk may have room again: calls get 503 until then.
      if (!isFull(error)) throw error;
    }
    this.tick();
    const behindMs = this.strict ? STRICT_BEHIND_MS : this.env.journalFsyncMs;
    this.timers = [setInterval(() => this.tick(), TICK_MS), setInterval(() => this.syncBehind(), behindMs)];
    for (const timer of this.timers) timer.unref();
  }

  /** Why the journal does not do all it promises right now; null when it does. For health and metrics. */
  get degraded(): string | null {
    return this.faults.gravest;
  }

  /** Whether new calls may begin. */
  get accepting(): boolean {
    if (!this.writable || this.unsyncedBytes > MOST_UNSYNCED_BYTES) return false;
    // Their answers would wait for a disk that does not sync.
    return !(this.strict && this.faults.has('sync'));
  }

  /** Bytes in the files of this boot. */
  get bytes(): number {
    let sum = 0;
    for (const file of this.folder) sum += file.size;
    return sum;
  }

  /** Milliseconds since the oldest file that is still needed was begun; 0 without one. */
  get oldestMs(): number {
    for (const file of this.folder) if (file.held + file.parked > 0) return performance.now() - file.openedAt;
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
      this.unsyncedBytes += lines.length;
      if (this.writable) this.faults.mended('write');
      return file;
    } catch (error) {
      // Until the next look at the disk: each beginning would only tear another line.
      if (isFull(error) || !mayUseReserve) this.writable = false;
      this.faults.report('write', error);
      throw error;
    }
  }

  /**
   * Appends lines in one write, as far as the current file takes them; what is left is for appendLines.
   *
   * @returns the file and how many bytes of whole lines it took, which the caller counts into its `held`; null: none
   */
  appendSome(lines: Buffer): { file: JournalFile; bytes: number } | null {
    const file = this.folder.active;
    if (file === null || file.size >= this.rotateAt) return null;
    try {
      file.append(lines);
      if (this.writable) this.faults.mended('write');
    } catch (error) {
      this.faults.report('write', error);
      // What room can be made is for ends; else the file may lie on bad blocks.
      if (isFull(error)) this.writable = false;
      else this.rotateAt = 0;
    }
    this.unsyncedBytes += file.taken;
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
    if ((this.folder.active?.parked ?? 0) > 0) this.rotate();
    return [...this.folder].filter((file) => file.parked > 0);
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
    this.space.free();
    try {
      this.folder.close();
    } catch (error) {
      // What is left over costs little and goes with the next start.
      this.logger.debug(describeError(error));
    }
  }

  private write(lines: Buffer, mayUseReserve: boolean): JournalFile {
    if ((this.folder.active?.size ?? 0) >= this.rotateAt) this.tryToRotate();
    try {
      const file = this.folder.active ?? this.rotate();
      file.append(lines);
      return file;
    } catch (error) {
      this.faults.report('write', error);
      if (isFull(error)) {
        // The reserve is for calls in flight; a new one is refused instead.
        if (!mayUseReserve) throw error;
        this.space.free();
      }
    }
    // The old file may lie on bad blocks, or no new one can be made: whichever takes the lines, whole.
    this.tryToRotate();
    const file = this.folder.active ?? this.rotate();
    file.append(lines);
    return file;
  }

  /** One group commit. A failed sync is not asked for again on the same file: its lines go to a new one first. */
  private async commit(): Promise<boolean> {
    const { lost, namesFault } = await this.folder.sync();
    if (namesFault !== null) this.faults.report('sync', namesFault);
    for (const file of lost) this.faults.report('sync', new Error(file.syncFault!));
    if (lost.length > 0) {
      try {
        this.folder.rewrite(lost);
        this.rotateAt = ROTATE_BYTES;
      } catch (error) {
        // The lines stay with their files for the next attempt.
        this.faults.report('sync', error);
      }
    }
    const whole = lost.length === 0 && namesFault === null;
    if (whole) this.faults.mended('sync');
    this.unsyncedBytes = 0;
    for (const file of this.folder) for (const { length } of file.unsynced) this.unsyncedBytes += length;
    return whole;
  }

  private syncBehind(): void {
    if (!this.commits.busy && this.folder.dirty) void this.sync();
  }

  private tick(): void {
    const before = this.writable;
    this.writable = this.hasRoom() && this.takesLines();
    if (this.writable && !before) this.logger.log('The journal can be written again; calls are taken.');
    const { active } = this.folder;
    if (active !== null && active.size > 0 && performance.now() - active.openedAt > ROTATE_MS) {
      this.tryToRotate();
    }
    try {
      this.folder.discardDone();
      this.faults.mended('remove');
    } catch (error) {
      this.faults.report('remove', error);
    }
  }

  private hasRoom(): boolean {
    try {
      this.folder.open();
      this.space.check();
      this.faults.mended('space');
      return true;
    } catch (error) {
      this.faults.report('space', error);
      return false;
    }
  }

  /** A disk that is read-only, or broken, still tells how much room it has: only a write shows that it takes one. */
  private takesLines(): boolean {
    if (!this.faults.has('write')) return true;
    try {
      this.write(BLANK_LINE, false);
      this.faults.mended('write');
      return true;
    } catch (error) {
      this.faults.report('write', error);
      return false;
    }
  }

  private rotate(): JournalFile {
    const old = this.folder.active;
    const next = this.folder.rotate();
    this.rotateAt = ROTATE_BYTES;
    if (old !== null) this.discardIfDone(old);
    return next;
  }

  private tryToRotate(): void {
    try {
      this.rotate();
    } catch (error) {
      this.rotateAt = (this.folder.active?.size ?? 0) + ROTATE_AGAIN_BYTES;
      this.faults.report('write', error);
    }
  }

  private discardIfDone(file: JournalFile): void {
    try {
      this.folder.discardIfDone(file);
    } catch (error) {
      // Tried again with the next tick; read by the next start, it would only repeat what Postgres knows.
      this.faults.report('remove', error);
    }
  }
}
