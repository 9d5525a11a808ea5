import type { ClientBase } from 'pg';
import { startOf } from '../column-domains.js';
import type { LogRow } from '../columns.js';
import { databaseClock, isDropped, listPartitions, type Partition } from '../partitions.js';

/** By their primary key, in the partitions of these days only. */
const FIND = `
  SELECT id, outcome FROM request_log
  WHERE started_at BETWEEN $3 AND $4
    AND (started_at, id) IN (SELECT * FROM unnest($1::timestamptz[], $2::uuid[]))`;

/** Decides which rows of journal files Postgres has lost. */
export class LostRows {
  private constructor(
    private readonly partitions: readonly Partition[],
    private readonly now: number,
  ) {}

  static async in(client: ClientBase): Promise<LostRows> {
    return new LostRows(await listPartitions(client), await databaseClock(client));
  }

  /**
   * @returns the rows that Postgres does not have, or has as `interrupted` where the journal knows how they ended; and how
   * many it lacks because retention has dropped their day
   */
  async of(
    client: Pick<ClientBase, 'query'>,
    rows: readonly LogRow[],
  ): Promise<{ lost: LogRow[]; dropped: number }> {
    const kept = rows.filter(({ id }) => !isDropped(this.partitions, this.now, startOf(id)));
    if (kept.length === 0) return { lost: [], dropped: rows.length };
    const starts = kept.map(({ started_at }) => started_at);
    const sorted = [...starts].sort();
    const values = [starts, kept.map(({ id }) => id), sorted[0], sorted.at(-1)];
    const found = await client.query<Pick<LogRow, 'id' | 'outcome'>>(FIND, values);
    const outcomes = new Map(found.rows.map(({ id, outcome }) => [id, outcome]));
    const lost = kept.filter(({ id, outcome }) => {
      const there = outcomes.get(id);
      return there === undefined || (there === 'interrupted' && outcome !== 'interrupted');
    });
    return { lost, dropped: rows.length - kept.length };
  }
}
