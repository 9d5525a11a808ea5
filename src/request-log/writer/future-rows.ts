import { Logger } from '@nestjs/common';
import type { ClientBase } from 'pg';
import type { LogRow } from '../columns.js';
import type { JournalFile } from '../journal/journal-file.js';
import { DAY_MS, databaseClock } from '../partitions.js';

const MAX_AHEAD_MS = 2 * DAY_MS;
/** While rows wait, the database's clock is read this often, since it may have been corrected. */
const CHECK_MS = 5_000;
const REMIND_MS = 60_000;

/**
 * Rows that start more than 2 days ahead of the database's clock: one of the two clocks is wrong. They wait in the
 * journal without blocking other rows, and are written to Postgres once their start is near enough.
 */
export class FutureRows {
  private readonly logger = new Logger('RequestLog');
  /** For each journal file how many of its rows wait, and the start of the earliest one. */
  private readonly files = new Map<JournalFile, { count: number; earliest: string }>();
  /** The database's clock when it was last read, and that moment on the monotonic clock. */
  private clock: { ms: number; readAt: number } | null = null;
  private loggedAt = -Infinity;

  /** The latest start that a row may have now, as ISO 8601. Reads the database's clock only if a row seems later. */
  async latestStart(client: ClientBase, batch: readonly { row: LogRow }[]): Promise<string> {
    const estimate = this.clock === null ? '' : this.limit;
    if (batch.every(({ row }) => row.started_at <= estimate)) return estimate;
    await this.readClock(client);
    return this.limit;
  }

  /** Notes a row that waits in this file. */
  add({ started_at }: LogRow, file: JournalFile): void {
    const { count, earliest } = this.files.get(file) ?? { count: 0, earliest: started_at };
    this.files.set(file, { count: count + 1, earliest: started_at < earliest ? started_at : earliest });
  }

  /** All rows of this file were read back. */
  remove(file: JournalFile): void {
    this.files.delete(file);
  }

  /** Rows that wait. */
  get count(): number {
    let sum = 0;
    for (const { count } of this.files.values()) sum += count;
    return sum;
  }

  /** Whether some of the spilled rows in this file may be written now. */
  isDue(file: JournalFile): boolean {
    const future = this.files.get(file);
    // Once begun, a file is read to its end.
    if (future === undefined || file.readBack > 0 || file.spilled > future.count) return true;
    return this.clock !== null && future.earliest <= this.limit;
  }

  /** Whether a row that waited may be written now. */
  get due(): boolean {
    for (const file of this.files.keys()) if (this.isDue(file)) return true;
    return false;
  }

  /** Reads the clock if it is due and logs the waiting rows once a minute. */
  async check(client: ClientBase): Promise<void> {
    const { count } = this;
    if (count === 0) return;
    if (this.clock === null || performance.now() - this.clock.readAt > CHECK_MS) await this.readClock(client);
    if (performance.now() - this.loggedAt < REMIND_MS) return;
    this.loggedAt = performance.now();
    const [first] = [...this.files.values()].map(({ earliest }) => earliest).sort();
    this.logger.error(
      `${count} rows start more than 2 days ahead of the database's clock ` +
        `(${new Date(this.clock!.ms).toISOString()}), the first at ${first}. They wait in the journal. ` +
        `Check the clocks of this host and of the database server.`,
    );
  }

  private get limit(): string {
    const { ms, readAt } = this.clock!;
    return new Date(ms + performance.now() - readAt + MAX_AHEAD_MS).toISOString();
  }

  private async readClock(client: ClientBase): Promise<void> {
    const readAt = performance.now();
    this.clock = { ms: await databaseClock(client), readAt };
  }
}
