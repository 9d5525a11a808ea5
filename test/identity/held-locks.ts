import pg from 'pg';
import { eventually } from '../support/eventually.js';
import type { TestDatabase } from '../support/database.js';

export type Statement = [string, unknown[]?];

/** Another transaction, which takes its locks at the moments that a test chooses. */
export class HeldLocks {
  /** Did the last request wait for the other transaction? */
  hasWaited = false;

  private constructor(
    readonly other: pg.Client,
    private readonly pid: number,
    private readonly database: TestDatabase,
  ) {}

  static async in(database: TestDatabase): Promise<HeldLocks> {
    const other = new pg.Client({ connectionString: database.url });
    await other.connect();
    const { rows } = await other.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    return new HeldLocks(other, rows[0]!.pid, database);
  }

  end(): Promise<void> {
    return this.other.end();
  }

  /** Requests that wait for a lock, also for one that another waiting request holds. */
  async waiting(): Promise<number> {
    const [row] = await this.database.query<{ count: number }>(
      `SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0`,
    );
    return row!.count;
  }

  /** What the gateway writes by itself may wait too, for this or other locks. */
  private async isWaitedFor(): Promise<boolean> {
    const waiting = await this.database.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND $1::int = ANY (pg_blocking_pids(pid))`,
      [this.pid],
    );
    return waiting.length > 0;
  }

  /**
   * The other transaction takes its first lock, then the request comes as far as this lock, then the other takes the rest. If
   * the request holds one of these, Postgres ends one of both after a second.
   */
  between<T>(first: Statement, request: () => Promise<T>, then: Statement[]): Promise<T> {
    return this.around(first, request, then, tooSoon);
  }

  /** @param isOver what becomes of a request that does not need the first lock */
  async around<T>(
    first: Statement,
    request: () => Promise<T>,
    then: Statement[],
    isOver: (sent: Promise<T>) => Promise<unknown> = (sent) => sent,
  ): Promise<T> {
    await this.other.query('BEGIN');
    await this.other.query(...first);
    const sent = request();
    try {
      this.hasWaited = false;
      let isDecided = false;
      const waits = eventually(async () => isDecided || (await this.isWaitedFor())).then(() => true);
      const ends = isOver(sent).then(() => false);
      this.hasWaited = await Promise.race([waits, ends]).finally(() => (isDecided = true));
      for (const statement of then) await this.other.query(...statement);
      await this.other.query('COMMIT');
    } catch (error) {
      await this.other.query('ROLLBACK');
      await sent.catch(() => {});
      throw error;
    }
    return sent;
  }
}

async function tooSoon(sent: Promise<unknown>): Promise<never> {
  throw new Error(`the request did not wait: ${JSON.stringify(await sent)}`);
}
