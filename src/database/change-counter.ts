/**
 * Reads how often rows of a kind have changed. Within the query that reads the rows, both are of one snapshot; with
 * `FOR UPDATE` it waits for other changes and holds them up.
 */
export const countOfChanges = (counter: 'limits' | 'policies' | 'providers' | 'routes' | 'trusts') =>
  `SELECT value FROM change_counter WHERE name = '${counter}'`;

/**
 * Takes readings of rows with the count of changes that they reflect. Two reads may run at a time, on different connections:
 * an older result never replaces a newer one.
 */
export class LatestReading<Row extends { counted: string }> {
  private counted = -1n;

  /** @param keep what becomes of the newest rows */
  constructor(private readonly keep: (rows: readonly Row[]) => void) {}

  async take(read: () => Promise<Row[]>): Promise<void> {
    for (;;) {
      const before = this.counted;
      const rows = await read();
      const counted = BigInt(rows[0]!.counted);
      // A lower count without a concurrent read means that the database was restored.
      if (counted < this.counted && this.counted !== before) continue;
      this.keep(rows);
      this.counted = counted;
      return;
    }
  }
}
