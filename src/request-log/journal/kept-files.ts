import { existsSync, mkdirSync, renameSync, rmdirSync, unlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isFull } from './disk-health.js';
import type { JournalFile } from './journal-file.js';
import { keptFolder, keptName, runOf } from './run-directories.js';

/** A finished journal file: every row in it was acknowledged by Postgres. */
export interface KeptFile {
  readonly path: string;
  /** The UUID of the process run that wrote it. */
  readonly run: string;
  /** The number of its file in the run directory. */
  readonly number: number;
  /** The highest `seq` of its process run that acknowledged a row in it. */
  readonly seq: bigint;
  readonly bytes: number;
  /** When it was finished (monotonic ms): every row in it was acknowledged by then. Infinity: it does not expire. */
  keptAt: number;
}

/** How long finished files are kept, and how many bytes of them; 0 for either keeps none. */
export interface KeepLimits {
  readonly keepMs: number;
  readonly keepBytes: number;
}

/**
 * The finished journal files of this process, and of earlier runs in its place. They are kept for a while: a standby that
 * is promoted without its tail has lost rows that Postgres had acknowledged, and these files still have them. The files of
 * a run go in the order in which they were finished, so that what is kept reaches back without gaps.
 */
export class KeptFiles {
  /** Those that go first are first. */
  private files: KeptFile[] = [];
  /** They stay until their rows are put back, or an administrator has decided that they are not. */
  private readonly needed = new Set<KeptFile>();
  private totalBytes = 0;
  /** Every row that this process had acknowledged since (monotonic ms) is in a file that is kept or in use. */
  private coveredSince = performance.now();
  private gone = 0n;
  private readonly folder: string;
  private readonly run: string;

  /** @param runDirectory of this process */
  constructor(
    runDirectory: string,
    private readonly limits: KeepLimits,
  ) {
    this.folder = keptFolder(runDirectory);
    this.run = runOf(runDirectory);
  }

  get bytes(): number {
    return this.totalBytes;
  }

  /** Milliseconds back to which every acknowledged row is in a file that is kept or in use; 0 if none are kept. */
  get coveredMs(): number {
    return this.isOn ? Math.min(performance.now() - this.coveredSince, this.limits.keepMs) : 0;
  }

  /** The highest `seq` of this run of which a file is gone: not every row that it or an earlier one acknowledged is here. */
  get goneSeq(): bigint {
    return this.gone;
  }

  private get isOn(): boolean {
    return this.limits.keepMs > 0 && this.limits.keepBytes > 0;
  }

  /**
   * Moves a finished file of this run to the kept ones, or deletes it if none are kept, or no row in it was acknowledged.
   *
   * @returns whether it is kept
   * @throws the system's error; the file is then where it was
   */
  take({ path: from, number, acknowledgedBy: seq, size: bytes }: JournalFile): boolean {
    const path = join(this.folder, keptName(seq, number));
    if (!this.isOn || seq === 0n || !this.makeRoom(this.limits.keepBytes - bytes) || !this.move(from, path)) {
      remove(from);
      this.forget(this.run, seq, performance.now());
      return false;
    }
    this.files.push({ path, run: this.run, number, seq, bytes, keptAt: performance.now() });
    this.totalBytes += bytes;
    return true;
  }

  /** Adds what an earlier run has kept. @param file of which no other file of its run that is kept is older */
  add(file: KeptFile): void {
    const before = this.files.findIndex(({ keptAt }) => keptAt !== Infinity && keptAt > file.keptAt);
    this.files.splice(file.keptAt === Infinity ? 0 : before === -1 ? this.files.length : before, 0, file);
    this.totalBytes += file.bytes;
  }

  /** Deletes what is older or more than the limits allow. @throws the system's error; a later attempt deletes the rest */
  prune(): void {
    const now = performance.now();
    for (const file of [...this.files])
      if (now - file.keptAt >= this.limits.keepMs && !this.needed.has(file)) this.delete(file);
    this.makeRoom(this.limits.keepBytes);
  }

  /**
   * Deletes the oldest file because its disk is full.
   *
   * @returns false if there is none
   * @throws the system's error
   */
  makeSpace(): boolean {
    const oldest = this.files.find((file) => !this.needed.has(file));
    if (oldest === undefined) return false;
    this.delete(oldest);
    return true;
  }

  /** Files of a run that are kept, in the order in which it wrote them. */
  of(run: string): KeptFile[] {
    return this.files.filter((file) => file.run === run).sort((a, b) => a.number - b.number);
  }

  /**
   * Keeps the files of a run in which a later batch than this one acknowledged a row until `release()`, whatever the limits
   * are.
   *
   * @returns those of the run that are held, in the order in which it wrote them
   */
  hold(run: string, seq: bigint): KeptFile[] {
    for (const file of this.of(run)) if (file.seq > seq) this.needed.add(file);
    return this.held(run);
  }

  /** Files of a run that `hold()` keeps, in the order in which it wrote them. */
  held(run: string): KeptFile[] {
    return this.of(run).filter((file) => this.needed.has(file));
  }

  /** Ends `hold()` for a run: its rows are in Postgres again, as if they had been acknowledged just now, or not needed. */
  release(run: string): void {
    const released = new Set(this.held(run));
    for (const file of released) {
      this.needed.delete(file);
      file.keptAt = performance.now();
    }
    this.files = [
      ...this.files.filter((file) => !released.has(file)),
      ...this.files.filter((file) => released.has(file)),
    ];
  }

  /** The file was moved, or is gone. */
  remove(file: KeptFile): void {
    this.needed.delete(file);
    const at = this.files.indexOf(file);
    if (at === -1) return;
    this.files.splice(at, 1);
    this.totalBytes -= file.bytes;
  }

  /** Removes the folder of this run if it is empty. @returns whether it is gone @throws the system's error */
  close(): boolean {
    if (this.of(this.run).length > 0) return false;
    removeFolder(this.folder);
    return true;
  }

  /** @returns false if more than these bytes are left, all of them needed */
  private makeRoom(bytes: number): boolean {
    while (this.totalBytes > bytes) if (!this.makeSpace()) return false;
    return true;
  }

  private delete(file: KeptFile): void {
    remove(file.path);
    this.remove(file);
    this.forget(file.run, file.seq, file.keptAt);
    if (file.run === this.run || this.of(file.run).length > 0) return;
    // The last file of an earlier run.
    removeFolder(dirname(file.path));
    removeFolder(dirname(dirname(file.path)));
  }

  private forget(run: string, seq: bigint, at: number): void {
    if (seq === 0n || run !== this.run) return;
    if (seq > this.gone) this.gone = seq;
    this.coveredSince = Math.max(this.coveredSince, at);
  }

  /** @returns false if the file is gone, or the disk is full: an entry of a directory may need a block */
  private move(from: string, to: string): boolean {
    try {
      // There is one but for the first file of this run, or if an operator has removed it.
      if (!existsSync(this.folder)) mkdirSync(this.folder, { mode: 0o700 });
      renameSync(from, to);
      return true;
    } catch (error) {
      if (isFull(error) || isMissing(error)) return false;
      throw error;
    }
  }
}

function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

function removeFolder(path: string): void {
  try {
    rmdirSync(path);
  } catch (error) {
    // Files that this version does not know, or that still wait for Postgres.
    if (!isMissing(error) && (error as NodeJS.ErrnoException).code !== 'ENOTEMPTY') throw error;
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}
