import { setTimeout as sleep } from 'node:timers/promises';
import type { DiskHealth } from './disk-health.js';
import type { RunDirectory } from './run-directory.js';

const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;

/** Group commit: all callers that wait at the same time share one sync, which is retried with back-off until it succeeds. */
export class JournalSync {
  private waiters: (() => void)[] = [];
  private isRunning = false;

  /** @param rewritten called when the records of a failed sync were written to a new file */
  constructor(
    private readonly directory: RunDirectory,
    private readonly health: DiskHealth,
    private readonly rewritten: () => void,
  ) {}

  /** Resolves when everything appended before this call is on the disk. */
  wait(): Promise<void> {
    return new Promise((resolve) => {
      this.waiters.push(resolve);
      if (!this.isRunning) void this.run();
    });
  }

  /**
   * Syncs in the background what is not on the disk yet. A sync that takes longer than the interval is followed by the next
   * at once: so a record waits for the interval or that sync, whichever is longer, and for its own.
   */
  syncInBackground(): void {
    if (this.waiters.length === 0 && this.directory.dirty) void this.wait();
  }

  private async run(): Promise<void> {
    this.isRunning = true;
    // All callers in the same tick of the event loop share this sync.
    await Promise.resolve();
    let retryMs = FIRST_RETRY_MS;
    while (this.waiters.length > 0) {
      const waiters = this.waiters;
      this.waiters = [];
      if (await this.commit()) {
        retryMs = FIRST_RETRY_MS;
        for (const resolve of waiters) resolve();
      } else {
        this.waiters.unshift(...waiters);
        await sleep(retryMs, undefined, { ref: false });
        retryMs = Math.min(retryMs * 2, MAX_RETRY_MS);
      }
    }
    // In the same tick as the check of the waiters: a later caller starts a new run.
    this.isRunning = false;
  }

  /** A failed sync is not retried on the same file: its records are written to a new one first. @returns whether all succeeded */
  private async commit(): Promise<boolean> {
    const { health, directory } = this;
    const { lost, namesError, keptError } = await directory.sync();
    if (namesError !== null) health.report('sync', namesError);
    for (const file of lost) health.report('sync', new Error(file.syncError!));
    if (lost.length > 0) {
      try {
        directory.rewrite(lost);
        this.rewritten();
      } catch (error) {
        // The records stay with their files for the next attempt.
        health.report('sync', error);
      }
    }
    if (lost.length > 0 || namesError !== null) return false;
    // No row waits for it: only a power loss before the file's rows are lost elsewhere would lose the copy.
    if (keptError !== null) health.report('sync', new Error(keptError));
    else health.recovered('sync');
    return true;
  }
}
