import { closeSync, fsync, fsyncSync, mkdirSync, openSync, rmdirSync, unlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { JournalFile } from './journal-file.js';

/** The files of one process run: one is appended to, the others are kept for as long as a call needs a line of them. */
export class RunDirectory {
  /** The file that is appended to; null while none could be made. */
  active: JournalFile | null = null;
  private readonly files = new Set<JournalFile>();
  /** Files whose unsynced lines were written again in another, which stays as long as they do. */
  private readonly heirs = new Map<JournalFile, JournalFile>();
  private descriptor: number | null = null;
  /** Names came or went since the last sync. */
  private changed = false;
  private sequence = 0;
  private closed = false;

  constructor(private readonly path: string) {}

  /** Makes the folder and its first file; again where an earlier attempt stopped. @throws the system's error */
  open(): void {
    if (this.active !== null) return;
    mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 });
    mkdirSync(this.path, { recursive: true, mode: 0o700 });
    // Kept open, so that a sync needs no descriptor of its own.
    this.descriptor ??= openSync(this.path, 'r');
    const parent = openSync(dirname(this.path), 'r');
    try {
      fsyncSync(parent);
    } finally {
      closeSync(parent);
    }
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

  /** Bytes of lines that are not on the disk yet. */
  get unsyncedBytes(): number {
    let sum = 0;
    for (const file of this.files) sum += file.unsyncedBytes;
    return sum;
  }

  /**
   * Goes on in a new file.
   *
   * @throws the system's error; the old one is then still there to go on with
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

  /** Brings all lines and names to the disk. @returns the files for which that failed, and why the names did not */
  async sync(): Promise<{ lost: JournalFile[]; namesFault: Error | null }> {
    const files = [...this.files];
    const { changed } = this;
    this.changed = false;
    const [namesFault] = await Promise.all([
      changed ? this.syncNames() : null,
      ...files.filter((file) => file.dirty).map((file) => file.sync()),
    ]);
    if (namesFault !== null) this.changed = true;
    return {
      lost: files.filter((file) => file.syncFault !== null && file.unsynced.length > 0),
      namesFault,
    };
  }

  /** Writes lines that a failed sync may have lost into a new file. @throws the system's error; the rest stays lost */
  rewrite(lost: readonly JournalFile[]): void {
    const heir = this.rotate();
    for (const file of lost) {
      // Discarded just now: its calls are in Postgres.
      if (!this.files.has(file)) continue;
      for (const line of file.unsynced) heir.append(line);
      file.forgetUnsynced();
      heir.held++;
      this.heirs.set(file, heir);
    }
  }

  /**
   * Removes a file that no call needs any more. One that comes back after a power loss only repeats what Postgres knows,
   * so nothing waits for that to be durable.
   *
   * @throws the system's error; the file then goes with a later attempt
   */
  discardIfDone(file: JournalFile): void {
    if (!file.closed || file.held > 0 || file.parked > 0 || !this.files.has(file)) return;
    try {
      unlinkSync(file.path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
    this.files.delete(file);
    file.forgetUnsynced();
    this.changed = true;
    const heir = this.heirs.get(file);
    this.heirs.delete(file);
    if (heir === undefined) return;
    heir.held--;
    this.discardIfDone(heir);
  }

  discardDone(): void {
    for (const file of this.files) this.discardIfDone(file);
  }

  /** Takes no more; removes itself when nothing in it is needed. @throws the system's error */
  close(): void {
    this.closed = true;
    this.active?.close();
    this.discardDone();
    if (this.descriptor !== null) closeSync(this.descriptor);
    this.descriptor = null;
    if (this.files.size === 0) rmdirSync(this.path);
  }

  /** Makes names durable; a file's own fsync does not cover its name (fsync(2)). */
  private syncNames(): Promise<Error | null> {
    return new Promise((resolve) => {
      if (this.descriptor === null) resolve(null);
      else fsync(this.descriptor, resolve);
    });
  }
}
