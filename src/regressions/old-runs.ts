import type { ClientBase } from 'pg';
import { endUncountedRuns, forgetRuns, readOldRuns } from './regression-store.js';

const EVERY_MS = 3_600_000;

/**
 * Takes runs for ended that were not counted for an hour, such as those of processes that were killed, and removes those that
 * ended a week ago. Postgres's clock may jump, so only those that have not changed for an hour of this process's clock either.
 */
export class OldRuns {
  private sweptAt = performance.now();
  private seen: ReadonlyMap<string, string> = new Map();

  async sweep(client: Pick<ClientBase, 'query'>): Promise<void> {
    if (performance.now() - this.sweptAt < EVERY_MS) return;
    this.sweptAt = performance.now();
    const old = await readOldRuns(client);
    const unchanged = new Map([...old].filter(([run, seq]) => this.seen.get(run) === seq));
    await endUncountedRuns(client, unchanged);
    await forgetRuns(client, unchanged);
    this.seen = old;
  }
}
