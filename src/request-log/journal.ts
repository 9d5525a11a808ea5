import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  rmdirSync,
  statfsSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { v7 as uuidv7 } from 'uuid';
import { InjectEnv } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { describeFault } from '../database/database-fault.js';
import { JournalFile } from './journal-file.js';
import { encodeLine, type JournalRecord } from './journal-line.js';

const ROTATE_BYTES = 8 * 1024 * 1024;
const ROTATE_MS = 60_000;
/** Below this much free space no new call is taken. */
const FREE_FLOOR_BYTES = 64 * 1024 * 1024;
/** Freed when the disk is full all the same, so that calls in flight can still end. */
const RESERVE_BYTES = 4 * 1024 * 1024;
const SPACE_CHECK_MS = 1_000;

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
  /** Why the last fault happened, until a write succeeds again; for health and metrics. */
  degraded: string | null = null;
  private readonly logger = new Logger('Journal');
  private readonly files = new Set<JournalFile>();
  private active!: JournalFile;
  private sequence = 0;
  private roomy = true;
  private reserved = false;
  private syncWaiters: (() => void)[] = [];
  private syncFlight: Promise<void> | null = null;
  private timers: NodeJS.Timeout[] = [];

  constructor(@InjectEnv() private readonly env: Settings) {
    this.root = join(env.dataDir, 'journal');
    this.bootFolder = join(this.root, uuidv7());
    this.strict = env.journalFsyncMs === 0;
  }

  onModuleInit(): void {
    mkdirSync(this.root, { recursive: true, mode: 0o700 });
    mkdirSync(this.bootFolder, { mode: 0o700 });
    syncFolder(this.root);
    this.active = this.create();
    this.checkSpace();
    this.timers = [setInterval(() => this.checkSpace(), SPACE_CHECK_MS)];
    if (!this.strict) this.timers.push(setInterval(() => void this.sync(), this.env.journalFsyncMs));
    for (const timer of this.timers) timer.unref();
  }

  /** Whether new calls may begin: there is room, and the last write did not fail. */
  get accepting(): boolean {
    return this.roomy;
  }

  /** Bytes in the files of this boot. */
  get bytes(): number {
    let sum = 0;
    for (const file of this.files) sum += file.size;
    return sum;
  }

  /**
   * Appends a record.
   *
   * @returns the file that holds it, to be let go of when the call's row is in Postgres
   * @throws the system's error when neither the current file nor a new one takes it
   */
  append(record: JournalRecord): JournalFile {
    const line = encodeLine(record);
    if (this.active.size >= ROTATE_BYTES) this.rotate();
    try {
      this.active.append(line);
    } catch (error) {
      this.fault(error);
      // The line may be torn in the old file: it is written whole in a new one.
      this.freeReserve();
      this.rotate();
      this.active.append(line);
    }
    if (this.degraded !== null && this.roomy) this.degraded = null;
    this.active.held++;
    return this.active;
  }

  /** Settles when everything appended so far is on the disk; calls that wait at the same time share one sync. */
  sync(): Promise<void> {
    return new Promise((resolve) => {
      this.syncWaiters.push(resolve);
      this.syncFlight ??= this.syncWaiting().finally(() => (this.syncFlight = null));
    });
  }

  /** A call's row is in Postgres: its lines are no longer needed. */
  release(files: readonly JournalFile[]): void {
    for (const file of files) {
      file.held--;
      this.discardIfDone(file);
    }
  }

  /** A call's row is given up in memory; its lines stay until they have been read back. */
  park(files: readonly JournalFile[]): void {
    for (const file of files) {
      file.held--;
      file.parked++;
    }
  }

  /** Ends the current file and gives all that hold parked calls, with how many lines of each to unpark afterwards. */
  parkedFiles(): Map<JournalFile, number> {
    const parked = new Map<JournalFile, number>();
    for (const file of this.files) if (file.parked > 0) parked.set(file, file.parked);
    if (parked.has(this.active)) this.rotate();
    return parked;
  }

  /** Paths of this boot's files, oldest first. */
  filePaths(): string[] {
    return [...this.files].map((file) => file.path);
  }

  /** The parked lines counted here have been read back and are in Postgres. */
  unpark(parked: ReadonlyMap<JournalFile, number>): void {
    for (const [file, count] of parked) {
      file.parked -= count;
      this.discardIfDone(file);
    }
  }

  /** Syncs, and removes what is no longer needed; what is needed stays for the next start. */
  async close(): Promise<void> {
    for (const timer of this.timers) clearInterval(timer);
    await this.sync();
    this.active.close();
    this.discardIfDone(this.active);
    this.freeReserve();
    if (this.files.size === 0) rmdirSync(this.bootFolder);
    syncFolder(this.root);
  }

  private async syncWaiting(): Promise<void> {
    // Appends of the same turn of the event loop go with this sync.
    await Promise.resolve();
    while (this.syncWaiters.length > 0) {
      const waiters = this.syncWaiters;
      this.syncWaiters = [];
      const dirty = [...this.files].filter((file) => file.dirty);
      const lost = (await Promise.all(dirty.map((file) => file.sync()))).flat();
      if (lost.length > 0) {
        this.fault(new Error('fsync failed'));
        this.rewrite(lost, dirty);
        this.syncWaiters.push(...waiters);
      } else {
        for (const resolve of waiters) resolve();
      }
      this.rotateOld();
    }
  }

  /** Writes lines that a failed fsync may have lost into a new file, which then stays as long as their own files do. */
  private rewrite(lines: readonly Buffer[], from: readonly JournalFile[]): void {
    try {
      this.rotate();
      for (const line of lines) this.active.append(line);
    } catch (error) {
      this.fault(error);
      return;
    }
    for (const file of from) {
      if (file === this.active) continue;
      this.active.held++;
      this.heirs.set(file, this.active);
    }
  }

  private readonly heirs = new Map<JournalFile, JournalFile>();

  private rotateOld(): void {
    if (this.active.size > 0 && performance.now() - this.active.openedAt > ROTATE_MS) {
      try {
        this.rotate();
      } catch (error) {
        this.fault(error);
      }
    }
  }

  private rotate(): void {
    const old = this.active;
    this.active = this.create();
    old.close();
    this.discardIfDone(old);
  }

  private create(): JournalFile {
    const file = JournalFile.create(join(this.bootFolder, `${String(++this.sequence).padStart(8, '0')}.log`));
    this.files.add(file);
    syncFolder(this.bootFolder);
    return file;
  }

  private discardIfDone(file: JournalFile): void {
    if (!file.closed || file.held > 0 || file.parked > 0 || !this.files.delete(file)) return;
    unlinkSync(file.path);
    syncFolder(this.bootFolder);
    const heir = this.heirs.get(file);
    this.heirs.delete(file);
    if (heir !== undefined) this.release([heir]);
  }

  private checkSpace(): void {
    try {
      const { bavail, bsize } = statfsSync(this.bootFolder);
      const roomy = bavail * bsize > FREE_FLOOR_BYTES;
      if (roomy !== this.roomy) {
        if (roomy) this.logger.log('There is room for the journal again; calls are taken.');
        else this.fault(new Error('the disk of DATA_DIR is full; new calls get 503 until there is room'));
      }
      this.roomy = roomy;
      if (roomy && !this.reserved) {
        writeFileSync(join(this.bootFolder, 'reserve'), Buffer.alloc(RESERVE_BYTES), { mode: 0o600 });
        this.reserved = true;
      }
    } catch (error) {
      this.roomy = false;
      this.fault(error);
    }
  }

  private freeReserve(): void {
    if (!this.reserved) return;
    this.reserved = false;
    unlinkSync(join(this.bootFolder, 'reserve'));
  }

  private fault(error: unknown): void {
    const reason = describeFault(error);
    if (this.degraded !== reason) this.logger.error(`The journal is degraded: ${reason}`);
    this.degraded = reason;
  }
}

/** Makes names in a folder durable; a file's own fsync does not cover its name (fsync(2)). */
function syncFolder(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
