/** A reader of the whole log begins in 1970. */
const MAX_MS = 100 * 366 * 86_400_000;

/**
 * How much time of the log is read in one query. There is no index that finds the next row in a long log, so this follows
 * the rate of rows: a query should find about as many rows as a batch takes.
 */
export class LogSpan {
  private ms = 60_000;

  /** @param mostRows of a batch */
  constructor(private readonly mostRows: number) {}

  /** Where the next query ends. */
  end(from: Date, horizon: Date): Date {
    return new Date(Math.min(from.getTime() + this.ms, horizon.getTime()));
  }

  /**
   * @param rows that the query found
   * @param fullMs milliseconds between the first and the last of them, if there were more than a batch takes; else null
   * @param isLast true if the query ended at the horizon
   */
  found(rows: number, fullMs: number | null, isLast: boolean): void {
    if (rows === 0) this.ms = Math.min(this.ms * 4, MAX_MS);
    else if (fullMs !== null || !isLast) {
      // As long as a batch takes at the rate of these rows, and a little more: the rest is read and sorted again.
      const ms = fullMs ?? (this.ms * this.mostRows) / rows;
      this.ms = Math.min(Math.max(Math.ceil(1.2 * ms), 1), this.ms * 4, MAX_MS);
    }
  }
}
