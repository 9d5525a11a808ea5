import { close, constants, fdatasync, openSync, writeSync } from 'node:fs';
import { describeError } from '../../errors/describe-error.js';

/** Ends a torn record so that its checksum cannot match, whatever part of it was written: it was reported as failed. */
const SEAL = Buffer.from('~\n');
const NEWLINE = 0x0a;

/** One append-only file of the journal. It may be deleted once no call needs a record in it. */
export class JournalFile {
  /** Records whose calls are not in Postgres yet. */
  held = 0;
  /** Whole rows that are only in this file, not in memory, and must be read back. */
  spilled = 0;
  /** How many of the spilled rows, in their order, have been read back. */
  readBack = 0;
  size = 0;
  /** Bytes of complete records that the last append wrote, also if it failed in the middle. */
  taken = 0;
  /** Bytes of records that are not on the disk yet, those of a sync in progress included. */
  unsyncedBytes = 0;
  /** The highest `seq` of this process run that acknowledged a row with a record in this file; 0: none did. */
  acknowledgedBy = 0n;
  /** True once nothing is appended any more. */
  closed = false;
  readonly openedAt = performance.now();
  private lines: Buffer[] = [];
  private syncing = false;
  /** Set if an fsync failed: a retry on this descriptor would only hide the loss (fsync(2), "fsyncgate"). */
  private syncFailure: string | null = null;
  private torn = false;
  private finished = false;
  /** Of a finished file: what was appended since the last sync must still reach the disk. */
  private needsLastSync = false;

  private constructor(
    readonly path: string,
    /** Files of a run are numbered in the order in which they were created. */
    readonly number: number,
    /** Null once everything is synced and nothing is appended any more. */
    private fd: number | null,
  ) {}

  /** Creates the file; it must not exist. */
  static create(path: string, number: number): JournalFile {
    const { O_WRONLY, O_APPEND, O_CREAT, O_EXCL } = constants;
    return new JournalFile(path, number, openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL, 0o600));
  }

  /** A file of a dead run, whose rows are in Postgres. @param seq the one that acknowledged the last of them */
  static finished(path: string, number: number, bytes: number, seq: bigint): JournalFile {
    const file = new JournalFile(path, number, null);
    file.size = bytes;
    file.acknowledgedBy = seq;
    file.closed = true;
    return file;
  }

  /**
   * Writes encoded records to the operating system: from then on they survive this process.
   *
   * @throws the system's error; `taken` is then the length of the complete records, and the next one is torn and never
   * counts as a record
   */
  append(lines: Buffer): void {
    this.taken = 0;
    // The descriptor may belong to another file by now.
    if (this.closed) throw new Error('this file of the journal is closed');
    if (this.torn) {
      this.write(SEAL);
      this.torn = false;
    }
    const before = this.size;
    try {
      this.write(lines);
    } catch (error) {
      this.torn = true;
      this.taken = lines.subarray(0, this.size - before).lastIndexOf(NEWLINE) + 1;
      if (this.taken > 0) this.keep(lines.subarray(0, this.taken));
      throw error;
    }
    this.taken = lines.length;
    this.keep(lines);
  }

  /** True if a sync is due. */
  get dirty(): boolean {
    return this.needsLastSync || (this.lines.length > 0 && this.syncFailure === null);
  }

  /** Why a sync failed; `unsynced` must then be written to another file. */
  get syncError(): string | null {
    return this.syncFailure;
  }

  /** Encoded records that are not on the disk yet. */
  get unsynced(): readonly Buffer[] {
    return this.lines;
  }

  /** Syncs everything appended so far to the disk; sets `syncError` if that fails. */
  sync(): Promise<void> {
    const { lines, unsyncedBytes } = this;
    this.lines = [];
    this.syncing = true;
    this.needsLastSync = false;
    return new Promise((resolve) => {
      fdatasync(this.fd!, (error) => {
        this.syncing = false;
        if (error !== null) this.syncFailure = describeError(error);
        if (!this.finished) {
          if (error === null) this.unsyncedBytes -= unsyncedBytes;
          else this.lines = [...lines, ...this.lines];
        }
        this.releaseIfDone();
        resolve();
      });
    });
  }

  /** Call if the unsynced records were saved in another file. */
  forgetUnsynced(): void {
    this.lines = [];
    this.unsyncedBytes = 0;
    this.releaseIfDone();
  }

  /**
   * Every row is in Postgres: no record is held in memory any more.
   *
   * @param isKept the file stays: if it is dirty, one more sync is due, whose failure costs no row
   */
  finish(isKept: boolean): void {
    this.finished = true;
    this.needsLastSync = isKept && this.unsyncedBytes > 0 && this.syncFailure === null;
    this.forgetUnsynced();
  }

  /** Ends appending; the descriptor goes once everything is synced. */
  close(): void {
    this.closed = true;
    this.releaseIfDone();
  }

  private keep(lines: Buffer): void {
    this.lines.push(lines);
    this.unsyncedBytes += lines.length;
  }

  private write(bytes: Buffer): void {
    let written = 0;
    while (written < bytes.length) {
      const count = writeSync(this.fd!, bytes, written);
      // No error and no progress: without this the process would spin here for ever.
      if (count === 0) throw Object.assign(new Error('the journal accepts no bytes'), { code: 'EIO' });
      written += count;
      this.size += count;
    }
  }

  private releaseIfDone(): void {
    if (!this.closed || this.syncing || this.needsLastSync || this.lines.length > 0 || this.fd === null)
      return;
    const { fd } = this;
    this.fd = null;
    // An error of close can be ignored: all records are synced or saved in another file.
    close(fd, () => {});
  }
}
