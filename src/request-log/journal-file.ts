import { closeSync, constants, fdatasync, openSync, writeSync } from 'node:fs';

/** One append-only file of the journal. It may be unlinked once no call needs a line of it any more. */
export class JournalFile {
  /** Lines whose calls are not in Postgres yet. */
  held = 0;
  /** Lines whose calls were let go of in memory and wait here alone to be read back. */
  parked = 0;
  size = 0;
  /** True once nothing is appended any more. */
  closed = false;
  readonly openedAt = performance.now();
  private unsynced: Buffer[] = [];
  private syncing = false;

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
   * Hands a line to the operating system: from here on it survives this process.
   *
   * @throws the system's error; what was written of the line by then is torn and will be skipped
   */
  append(line: Buffer): void {
    let written = 0;
    while (written < line.length) written += writeSync(this.fd, line, written);
    this.size += line.length;
    this.unsynced.push(line);
  }

  get dirty(): boolean {
    return this.unsynced.length > 0;
  }

  /**
   * Brings what was appended so far to the disk.
   *
   * @returns lines that did not get there: a failed fsync may have dropped them from the system's cache, and asking the
   *   same descriptor again would only hide it, so the caller writes them elsewhere
   */
  sync(): Promise<Buffer[]> {
    const lines = this.unsynced;
    this.unsynced = [];
    this.syncing = true;
    return new Promise((resolve) => {
      fdatasync(this.fd, (error) => {
        this.syncing = false;
        if (this.closed && !this.dirty) this.release();
        resolve(error === null ? [] : lines);
      });
    });
  }

  /** Ends appending; the descriptor goes once everything is synced. */
  close(): void {
    this.closed = true;
    if (!this.dirty && !this.syncing) this.release();
  }

  private released = false;
  private release(): void {
    if (this.released) return;
    this.released = true;
    closeSync(this.fd);
  }
}
