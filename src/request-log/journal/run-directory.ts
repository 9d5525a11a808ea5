import { closeSync, fsync, fsyncSync, mkdirSync, openSync, rmdirSync, unlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { JournalFile } from './journal-file.js';

/** The files of one process run: one is appended to, the others are retained while a call needs a record in them. */
export class RunDirectory {
  /** The file that is appended to; null while none could be created. */
  active: JournalFile | null = null;
  private readonly files = new Set<JournalFile>();
  /** The successor of each file whose unsynced records were written again: it is retained as long as that file. */
  private readonly successors = new Map<JournalFile, JournalFile>();
  private descriptor: number | null = null;
  /** True if files were created or removed since the last sync. */
  private changed = false;
  private sequence = 0;
  private closed = false;

  constructor(private readonly path: string) {}

  /** Creates the directory and its first file; continues where an earlier attempt failed. @throws the system's error */
  open(): void {
    if (this.active !== null) return;
    mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 });
    mkdirSync(this.path, { recursive: true, mode: 0o700 });
    // Kept open, so that a sync needs no descriptor of its own.
    this.descriptor ??= openSync(this.path, 'r');
    // A directory's own fsync does not cover its name: that of `journal` is in DATA_DIR.
    const journal = dirname(this.path);
    for (const parent of [dirname(journal), journal]) syncDirectory(parent);
    this.rotate();
  }

  /** All files that are still needed, oldest first. */
  [Symbol.iterator](): Iterator<JournalFile> {
    return this.files.values();
  }

  /** True when a sync is due. */
  get dirty(): boolean {
    if (this.changed) return true;
    for (const file of this.files) if (file.dirty) return true;
    return false;
  }

  /** Bytes of records that are not on the disk yet. */
  get unsyncedBytes(): number {
    let sum = 0;
    for (const file of this.files) sum += file.unsyncedBytes;
    return sum;
  }

  /**
   * Creates a new file and appends to it from then on.
   *
   * @throws the system's error; the old file can then still be used
   */
  rotate(): JournalFile {
    if (this.closed) throw new Error('the journal is closed');
    const next = JournalFile.create(join(this.path, `${String(this.sequence + 1).padStart(8, '0')}.log`));
    this.sequence++;
    this.changed = true;
    this.files.add(next);
    const old = this.active;
    this.active = next;
    old?.close();
    return next;
  }

  /** Syncs all records and file names to the disk. @returns the files that failed, and the error of the file names */
  async sync(): Promise<{ lost: JournalFile[]; namesError: Error | null }> {
    const files = [...this.files];
    const { changed } = this;
    this.changed = false;
    const [namesError] = await Promise.all([
      changed ? this.syncNames() : null,
      ...files.filter((file) => file.dirty).map((file) => file.sync()),
    ]);
    if (namesError !== null) this.changed = true;
    return {
      lost: files.filter((file) => file.syncError !== null && file.unsynced.length > 0),
      namesError,
    };
  }

  /** Writes records that a failed sync may have lost to a new file. @throws the system's error; the rest is retried later */
  rewrite(lost: readonly JournalFile[]): void {
    const successor = this.rotate();
    for (const file of lost) {
      // Discarded meanwhile: its calls are in Postgres.
      if (!this.files.has(file)) continue;
      for (const line of file.unsynced) successor.append(line);
      file.forgetUnsynced();
      successor.held++;
      this.successors.set(file, successor);
    }
  }

  /**
   * Removes a file that no call needs. If it reappears after a power loss, its rows are already in Postgres, so the removal
   * need not be durable.
   *
   * @throws the system's error; a later attempt removes the file
   */
  discardIfDone(file: JournalFile): void {
    if (!file.closed || file.held > 0 || file.spilled > 0 || !this.files.has(file)) return;
    try {
      unlinkSync(file.path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
    this.files.delete(file);
    file.forgetUnsynced();
    this.changed = true;
    const successor = this.successors.get(file);
    this.successors.delete(file);
    if (successor === undefined) return;
    successor.held--;
    this.discardIfDone(successor);
  }

  discardDone(): void {
    for (const file of this.files) this.discardIfDone(file);
  }

  /** Stops appending; removes the directory if no file in it is needed. @throws the system's error */
  close(): void {
    this.closed = true;
    this.active?.close();
    this.discardDone();
    if (this.descriptor !== null) closeSync(this.descriptor);
    this.descriptor = null;
    if (this.files.size === 0) rmdirSync(this.path);
  }

  /** Makes file names durable; a file's own fsync does not cover its name (fsync(2)). */
  private syncNames(): Promise<Error | null> {
    return new Promise((resolve) => {
      if (this.descriptor === null) resolve(null);
      else fsync(this.descriptor, resolve);
    });
  }
}

/** Makes the names in a directory durable. @throws the system's error */
function syncDirectory(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
