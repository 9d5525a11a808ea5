import { setTimeout as sleep } from 'node:timers/promises';
import type { DiskHealth } from './disk-health.js';
import type { RunDirectory } from './run-directory.js';

const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 5_000;

/** Group commit: all who wait at the same time share one sync, which is repeated, ever more slowly, until one succeeds. */
export class JournalSync {
  private waiters: (() => void)[] = [];
  private isRunning = false;

  /** @param rewritten called when the lines of a failed sync have gone to a new file */
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

  /** Syncs in the background what is not on the disk yet. */
  syncBehind(): void {
    if (!this.isRunning && this.directory.dirty) void this.wait();
  }

  private async run(): Promise<void> {
    this.isRunning = true;
    // Whoever asks in the same tick of the event loop shares this sync.
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
        retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS);
      }
    }
    // In the same tick as the check of the waiters: whoever comes later starts a new run.
    this.isRunning = false;
  }

  /** A failed sync is not repeated on the same file: its lines go to a new one first. @returns whether all succeeded */
  private async commit(): Promise<boolean> {
    const { health, directory } = this;
    const { lost, namesFault } = await directory.sync();
    if (namesFault !== null) health.report('sync', namesFault);
    for (const file of lost) health.report('sync', new Error(file.syncFault!));
    if (lost.length > 0) {
      try {
        directory.rewrite(lost);
        this.rewritten();
      } catch (error) {
        // The lines stay with their files for the next attempt.
        health.report('sync', error);
      }
    }
    if (lost.length > 0 || namesFault !== null) return false;
    health.recovered('sync');
    return true;
  }
}
