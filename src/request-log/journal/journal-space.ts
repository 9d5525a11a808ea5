import { closeSync, openSync, statfsSync, unlinkSync, writeSync } from 'node:fs';

/** Below this much free space no new call is taken. */
const FREE_FLOOR_BYTES = 64 * 1024 * 1024;
/** Freed when the disk is full all the same, so that calls in flight can still end. */
const RESERVE_BYTES = 4 * 1024 * 1024;

/** How much room the journal's disk has, and the reserve for the moment when it has none. */
export class JournalSpace {
  private reserved = false;

  /** @param reserve the worker's */
  constructor(
    private readonly folder: string,
    private readonly reserve: string,
  ) {}

  /**
   * Looks at the disk, and makes the reserve when there is room for it.
   *
   * @throws when no new call may be taken, or when the system cannot tell
   */
  check(): void {
    const { bavail, bsize } = statfsSync(this.folder);
    if (bavail * bsize <= FREE_FLOOR_BYTES) {
      throw new Error('the disk of DATA_DIR is full; new calls get 503 until there is room');
    }
    if (!this.reserved) this.fill();
  }

  /** Gives the reserve back to the disk. */
  free(): void {
    this.reserved = false;
    try {
      unlinkSync(this.reserve);
    } catch {
      // Given back before, or it cannot be: then there is nothing to gain here.
    }
  }

  private fill(): void {
    try {
      const fd = openSync(this.reserve, 'w', 0o600);
      try {
        for (let left = RESERVE_BYTES; left > 0;) left -= writeSync(fd, Buffer.alloc(Math.min(left, 65_536)));
      } finally {
        closeSync(fd);
      }
      this.reserved = true;
    } catch (error) {
      this.free();
      throw error;
    }
  }
}

/** Faults that freeing space mends. */
export function isFull(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOSPC' || code === 'EDQUOT';
}
