import { readFileSync } from 'node:fs';

/** Descriptors of what is open at all times: Postgres, the journal, the listeners, Node's own. */
const RESERVED = 64;
/** A call needs a connection to its client and one to its provider; the rest is for clients that are idle. */
const SHARE = 0.45;
const LEAST = 8;

/** Limits the connections to providers of this process, over all origins. Every call has one of its own. */
export class ConnectionLimit {
  private calls = 0;

  /**
   * @param most calls that may have a connection at the same time
   */
  constructor(readonly most: number = mostConnections(openFilesLimit())) {}

  /** Counts one more call. @returns false when there are as many as may be */
  take(): boolean {
    if (this.calls >= this.most) return false;
    this.calls++;
    return true;
  }

  /** A call no longer has a connection. */
  release(): void {
    this.calls--;
  }
}

/** @param openFiles how many descriptors the process may have */
export function mostConnections(openFiles: number): number {
  return Math.max(LEAST, Math.floor((openFiles - RESERVED) * SHARE));
}

/** `ulimit -n` of this process, after Node has raised it to the hard limit; known on Linux alone. */
function openFilesLimit(): number {
  if (process.platform !== 'linux') return Infinity;
  const limit = /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8'))![1]!;
  return limit === 'unlimited' ? Infinity : Number(limit);
}
