import { close, constants, fdatasync, openSync, writeSync } from 'node:fs';
import { describeError } from '../../errors/describe-error.js';

/** Closes a torn line so that its checksum cannot fit, whatever was written of it: its record was never taken. */
const SEAL = Buffer.from('~\n');
const NEWLINE = 0x0a;

/** One append-only file of the journal. It may be unlinked once no call needs a line of it any more. */
export class JournalFile {
  /** Lines whose calls are not in Postgres yet. */
  held = 0;
  /** Whole rows that wait here alone, let go of in memory, to be read back. */
  parked = 0;
  /** How many of the parked rows, in their order, have been read back. */
  readBack = 0;
  size = 0;
  /** Bytes of whole lines that the last append got to the system, also where it failed in the middle. */
  taken = 0;
  /** Bytes of lines that are not on the disk yet, those of a sync in progress included. */
  unsyncedBytes = 0;
  /** True once nothing is appended any more. */
  closed = false;
  readonly openedAt = performance.now();
  private lines: Buffer[] = [];
  private syncing = false;
  /** An fsync failed: asking this descriptor again would only hide what was lost (fsync(2), "fsyncgate"). */
  private fault: string | null = null;
  private torn = false;
  private released = false;

  private constructor(
    readonly path: string,
    private readonly fd: number,
  ) {}

  /** Creates the file; it must not exist. */
  static create(path: string): JournalFile {
    const { O_WRONLY, O_APPEND, O_CREAT, O_EXCL } = constants;
    return new JournalFile(path, openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL, 0o600));
  }

  /**
   * Hands lines to the operating system: from here on they survive this process.
   *
   * @throws the system's error; `taken` tells what it has of them, and the line after that is torn and never becomes a
   * record
   */
  append(lines: Buffer): void {
    this.taken = 0;
    // The descriptor may be another file's by now.
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

  /** Waits for sync(). */
  get dirty(): boolean {
    return this.lines.length > 0 && this.fault === null;
  }

  /** Why a sync failed; what is in `unsynced` must then be written elsewhere. */
  get syncFault(): string | null {
    return this.fault;
  }

  /** Lines that are not on the disk yet. */
  get unsynced(): readonly Buffer[] {
    return this.lines;
  }

  /** Brings what was appended so far to the disk; `syncFault` tells when that failed. */
  sync(): Promise<void> {
    const { lines, unsyncedBytes } = this;
    this.lines = [];
    this.syncing = true;
    return new Promise((resolve) => {
      fdatasync(this.fd, (error) => {
        this.syncing = false;
        if (error === null) this.unsyncedBytes -= unsyncedBytes;
        else {
          this.fault = describeError(error);
          this.lines = [...lines, ...this.lines];
        }
        this.releaseIfDone();
        resolve();
      });
    });
  }

  /** What is unsynced is saved elsewhere, or needed no more. */
  forgetUnsynced(): void {
    this.lines = [];
    this.unsyncedBytes = 0;
    this.releaseIfDone();
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
      const count = writeSync(this.fd, bytes, written);
      // No error and no progress: without this the process would spin here for ever.
      if (count === 0) throw Object.assign(new Error('the journal takes no bytes'), { code: 'EIO' });
      written += count;
      this.size += count;
    }
  }

  private releaseIfDone(): void {
    if (!this.closed || this.syncing || this.lines.length > 0 || this.released) return;
    this.released = true;
    // A close that fails has nothing to tell any more: all lines are synced or saved elsewhere.
    close(this.fd, () => {});
  }
}
