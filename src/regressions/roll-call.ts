import { aliveIn, type RunRow } from './known-runs.js';

/** A process that has not responded by then counts as dead. */
const WAIT_MS = 30_000;

/**
 * Waits, on a Postgres server that is new, until every process that lives has put back what that server had lost: until
 * then nobody knows which Idempotency-Keys are in use and what budgets have spent.
 */
export class RollCall {
  private server: string | null = null;
  private pending = new Set<string>();
  private since = -Infinity;
  private isOver = false;

  /**
   * @param known runs as this process remembers them; none when it starts
   * @param found runs as they are in Postgres
   */
  begin(server: string, known: Iterable<RunRow>, found: Iterable<RunRow>): void {
    const unanswered = [...found].filter((row) => row.server !== server);
    this.pending = new Set([...aliveIn(known), ...aliveIn(unanswered)].map(({ run }) => run));
    this.server = server;
    this.since = performance.now();
    this.isOver = false;
  }

  get isComplete(): boolean {
    return this.isOver;
  }

  /**
   * @param found as they are in Postgres now
   * @returns the runs that have not responded, if it ends now; null if it goes on, or had ended before
   */
  update(found: ReadonlyMap<string, RunRow>): string[] | null {
    if (this.isOver) return null;
    for (const run of this.pending) {
      const row = found.get(run);
      if (row !== undefined && (row.server === null || row.server === this.server)) this.pending.delete(run);
    }
    if (this.pending.size > 0 && performance.now() - this.since < WAIT_MS) return null;
    this.isOver = true;
    const silent = [...found.values()].filter(({ server }) => server !== null && server !== this.server);
    return silent.map(({ run }) => run);
  }
}
