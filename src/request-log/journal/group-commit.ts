import { setTimeout as sleep } from 'node:timers/promises';

const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 5_000;

/** Lets all who ask at the same time share one commit; asks again, ever more slowly, until one succeeds. */
export class GroupCommit {
  private waiters: (() => void)[] = [];
  private running = false;

  /** @param commit tells whether everything asked for before it began is committed; never throws */
  constructor(private readonly commit: () => Promise<boolean>) {}

  /** Settles when everything done before this call is committed. */
  wait(): Promise<void> {
    return new Promise((resolve) => {
      this.waiters.push(resolve);
      if (!this.running) void this.run();
    });
  }

  get busy(): boolean {
    return this.running;
  }

  private async run(): Promise<void> {
    this.running = true;
    // Who asks in the same turn of the event loop goes with this commit.
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
    // In the same turn as the look at the waiters: whoever comes later starts a new run.
    this.running = false;
  }
}
