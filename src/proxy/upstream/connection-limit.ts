import { readFileSync } from 'node:fs';

/** File descriptors that are always open: Postgres, the journal, the listeners, Node's own. */
const RESERVED = 64;
/** A call needs a connection to its client and one to its provider; the rest is for idle clients. */
const SHARE = 0.45;
const LEAST = 8;

/** Limits this process's connections to providers, over all origins. Each call uses a connection of its own. */
export class ConnectionLimit {
  private calls = 0;

  /**
   * @param most calls that may have a connection at the same time
   */
  constructor(readonly most: number = mostConnections(openFilesLimit())) {}

  /** Counts one more call. @returns false if the limit is reached */
  take(): boolean {
    if (this.calls >= this.most) return false;
    this.calls++;
    return true;
  }

  /** Counts one call less. */
  release(): void {
    this.calls--;
  }
}

/** @param openFiles file descriptors that the process may open */
export function mostConnections(openFiles: number): number {
  return Math.max(LEAST, Math.floor((openFiles - RESERVED) * SHARE));
}

/** `ulimit -n` of this process, after Node has raised it to the hard limit; known on Linux only. */
function openFilesLimit(): number {
  if (process.platform !== 'linux') return Infinity;
  const limit = /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8'))![1]!;
  return limit === 'unlimited' ? Infinity : Number(limit);
}
