import { closeSync, openSync, statfsSync, unlinkSync, writeSync } from 'node:fs';
import type { Logger } from '@nestjs/common';
import { describeError } from '../../errors/describe-error.js';

/** Below this much free space no new call is accepted. */
const FREE_FLOOR_BYTES = 64 * 1024 * 1024;
/** Freed if the disk is full nevertheless, so that calls in progress can still end. */
const RESERVE_BYTES = 4 * 1024 * 1024;

/** No space; records cannot be written, synced, or their files removed. The gravest first. */
const KINDS = ['space', 'write', 'sync', 'remove'] as const;
export type ErrorKind = (typeof KINDS)[number];

/** Errors of the journal's disk, its free space, and the reserve for a full disk. */
export class DiskHealth {
  private readonly reasons = new Map<ErrorKind, string>();
  private readonly reported = new Map<ErrorKind, Set<string>>(KINDS.map((kind) => [kind, new Set()]));
  private isReserved = false;
  private isUnknownLogged = false;

  /**
   * @param folder on the disk in question
   * @param reserve path of the worker's reserve file
   * @param makeSpace deletes a file that is not needed; false: there is none
   */
  constructor(
    private readonly logger: Logger,
    private readonly folder: string,
    private readonly reserve: string,
    private readonly makeSpace: () => boolean,
  ) {}

  /** Logs each error once: a bad disk words it differently for each file and each call, but with the same code. */
  report(kind: ErrorKind, error: unknown): void {
    const reason = describeError(error);
    const { code = reason } = error as NodeJS.ErrnoException;
    const reported = this.reported.get(kind)!;
    if (!reported.has(code)) this.logger.error(`The journal is degraded: ${reason}`);
    reported.add(code);
    this.reasons.set(kind, reason);
  }

  recovered(kind: ErrorKind): void {
    if (this.reasons.delete(kind)) this.reported.get(kind)!.clear();
  }

  has(kind: ErrorKind): boolean {
    return this.reasons.has(kind);
  }

  /** The gravest error, for an operator; null if there is none. */
  get gravest(): string | null {
    for (const kind of KINDS) if (this.reasons.has(kind)) return this.reasons.get(kind)!;
    return null;
  }

  /** Runs a step and records whether it failed. @returns whether it succeeded */
  attempt(kind: ErrorKind, step: () => void): boolean {
    try {
      step();
      this.recovered(kind);
      return true;
    } catch (error) {
      this.report(kind, error);
      return false;
    }
  }

  /** Creates the reserve if there is space. @throws if no new call may be accepted, or if reading the free space fails */
  checkSpace(): void {
    while (this.isBelowFloor()) {
      if (!this.makeSpace())
        throw new Error('the disk of DATA_DIR is full; new calls get 503 until there is space');
    }
    if (!this.isReserved) this.fillReserve();
  }

  /** Gives the reserve back to the disk. */
  freeReserve(): void {
    this.isReserved = false;
    try {
      unlinkSync(this.reserve);
    } catch {
      // Already removed, or it cannot be removed.
    }
  }

  private isBelowFloor(): boolean {
    const free = this.freeBytes();
    return free !== null && free <= FREE_FLOOR_BYTES;
  }

  /** Null if the file system does not count it, as some in user space: a full disk is then noticed when a write fails. */
  private freeBytes(): number | null {
    try {
      const { blocks, bavail, bsize } = statfsSync(this.folder);
      if (blocks > 0) return bavail * bsize;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSYS') throw error;
    }
    if (!this.isUnknownLogged) {
      this.logger.warn(
        'The file system of DATA_DIR does not report its free space. If it fills up, new calls get 503 only when a ' +
          'write has failed.',
      );
    }
    this.isUnknownLogged = true;
    return null;
  }

  private fillReserve(): void {
    try {
      const fd = openSync(this.reserve, 'w', 0o600);
      try {
        for (let left = RESERVE_BYTES; left > 0;) left -= writeSync(fd, Buffer.alloc(Math.min(left, 65_536)));
      } finally {
        closeSync(fd);
      }
      this.isReserved = true;
    } catch (error) {
      this.freeReserve();
      throw error;
    }
  }
}

/** Errors that freeing space fixes. */
export function isFull(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOSPC' || code === 'EDQUOT';
}
