import { closeSync, fsync, fsyncSync, mkdirSync, openSync, rmdirSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { JournalFile } from './journal-file.js';
import type { KeptFiles } from './kept-files.js';
import { keptFolder, logName } from './run-directories.js';

/** The files of one process run: one is appended to, the others are retained while a call needs a record in them. */
export class RunDirectory {
  /** The file that is appended to; null while none could be created. */
  active: JournalFile | null = null;
  private readonly files = new Set<JournalFile>();
  /** Kept ones whose last sync is due. */
  private readonly finished = new Set<JournalFile>();
  /** The successor of each file whose unsynced records were written again: it is retained as long as that file. */
  private readonly successors = new Map<JournalFile, JournalFile>();
  private descriptor: number | null = null;
  /** True if files were created or removed since the last sync. */
  private changed = false;
  private sequence = 0;
  private closed = false;

  constructor(
    private readonly path: string,
    private readonly kept: KeptFiles,
  ) {}

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
    if (this.changed || this.finished.size > 0) return true;
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
    const next = JournalFile.create(join(this.path, logName(this.sequence + 1)), this.sequence + 1);
    this.sequence++;
    this.changed = true;
    this.files.add(next);
    const old = this.active;
    this.active = next;
    old?.close();
    return next;
  }

  /**
   * Syncs all records and file names to the disk.
   *
   * @returns the files that failed, the error of the file names, and that of a kept file, whose rows are in Postgres
   */
  async sync(): Promise<{ lost: JournalFile[]; namesError: Error | null; keptError: string | null }> {
    const files = [...this.files];
    const finished = [...this.finished];
    this.finished.clear();
    const { changed } = this;
    this.changed = false;
    const [namesError] = await Promise.all([
      changed ? this.syncNames() : null,
      ...[...files, ...finished].filter((file) => file.dirty).map((file) => file.sync()),
    ]);
    if (namesError !== null) this.changed = true;
    return {
      lost: files.filter((file) => file.syncError !== null && file.unsynced.length > 0),
      namesError,
      keptError: finished.find(({ syncError }) => syncError !== null)?.syncError ?? null,
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
   * Moves a file that no call needs to the kept ones. If it reappears after a power loss, its rows are already in Postgres,
   * so this need not be durable before the call goes on.
   *
   * @throws the system's error; a later attempt moves the file
   */
  discardIfDone(file: JournalFile): void {
    if (!file.closed || file.held > 0 || file.spilled > 0 || !this.files.has(file)) return;
    const isKept = this.kept.take(file);
    this.files.delete(file);
    file.finish(isKept);
    if (file.dirty) this.finished.add(file);
    this.changed = true;
    const successor = this.successors.get(file);
    this.successors.delete(file);
    if (successor === undefined) return;
    successor.held--;
    // It has records of the same rows.
    if (file.acknowledgedBy > successor.acknowledgedBy) successor.acknowledgedBy = file.acknowledgedBy;
    this.discardIfDone(successor);
  }

  /**
   * Makes a file of a dead run a kept one of this run: its rows are in Postgres.
   *
   * @param seq the one of this run that acknowledged the last of them
   * @throws the system's error; the file is then where it was
   */
  adopt(path: string, bytes: number, seq: bigint): void {
    this.kept.take(JournalFile.finished(path, ++this.sequence, bytes, seq));
    this.changed = true;
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
    if (this.files.size === 0 && this.kept.close()) rmdirSync(this.path);
  }

  /** Makes file names durable; a file's own fsync does not cover its name (fsync(2)). */
  private async syncNames(): Promise<Error | null> {
    // First where a file has gone to.
    const error = await syncKeptNames(keptFolder(this.path));
    if (error !== null) return error;
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

/** The same for a folder that need not exist. */
async function syncKeptNames(path: string): Promise<Error | null> {
  try {
    const folder = await open(path, 'r');
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
    return null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? null : (error as Error);
  }
}
