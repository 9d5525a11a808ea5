import type { RequestFilter } from './request-query.js';
import type { RecordedPlace, RequestLogReader } from './request-log.reader.js';
import type { RequestView } from './request-view.js';

const PAGE = 500;
/** What is complete is read again for so long, should the server's clock be set back a little. */
const OVERLAP_MS = 5_000;
/** A transaction that stays open keeps the log incomplete from its start on; longer than this it is not waited for. */
const LONGEST_WAIT_MS = 60_000;
/** Rows remembered as shown at most: some 10 MB. */
const MOST_REMEMBERED = 50_000;

const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/**
 * Follows the log in the order in which Postgres gets its rows. Not by their start: a row comes when its call has ended,
 * a long one's behind others that began later, and a journal's hours late. Not by `recorded_at` alone either: a row may
 * become visible after one that was recorded later. So a window is read again each time, from where the log was complete
 * on, and what was shown is remembered for just that window.
 */
export class LogTail {
  /** `recorded_at` of what was shown, by id: a row that was mended has a later one and is shown again. */
  private readonly shown = new Map<string, string>();
  private windowStart = 0;
  private place: RecordedPlace = { recorded_at: new Date(0), id: LAST_ID };
  /** Up to when the log was complete before the window's first page was read. */
  private completeUntil: number | null = null;

  constructor(
    private readonly reader: RequestLogReader,
    private readonly filter: RequestFilter,
  ) {}

  /** Takes up its place. @returns so many of the last calls, oldest first */
  async begin(count: number): Promise<RequestView[]> {
    this.startAt((await this.reader.recordedUntil()).getTime());
    if (count === 0) return [];
    const { data } = await this.reader.list({ ...this.filter, limit: count });
    for (const row of data) this.remember(row);
    return data.reverse();
  }

  /** What has come since, each row once. `more`: there is more already. */
  async next(): Promise<{ rows: RequestView[]; more: boolean }> {
    this.completeUntil ??= (await this.reader.recordedUntil()).getTime();
    const page = await this.reader.recordedAfter(this.filter, this.place, PAGE);
    const rows = page.filter((row) => this.shown.get(row.id) !== row.recorded_at);
    for (const row of rows) this.remember(row);
    const last = page.at(-1);
    const more = page.length === PAGE;
    if (last !== undefined && more) this.place = { recorded_at: new Date(last.recorded_at), id: last.id };
    else this.startAt(this.nextWindow(this.completeUntil, last));
    return { rows, more };
  }

  private nextWindow(completeUntil: number, newest: RequestView | undefined): number {
    const seen = newest === undefined ? 0 : Date.parse(newest.recorded_at);
    return Math.max(this.windowStart, completeUntil - OVERLAP_MS, seen - LONGEST_WAIT_MS);
  }

  private startAt(ms: number): void {
    this.windowStart = ms;
    this.place = { recorded_at: new Date(ms), id: LAST_ID };
    this.completeUntil = null;
    for (const [id, recordedAt] of this.shown) if (Date.parse(recordedAt) <= ms) this.shown.delete(id);
  }

  private remember(row: RequestView): void {
    this.shown.set(row.id, row.recorded_at);
    if (this.shown.size <= MOST_REMEMBERED) return;
    // More than can be remembered: the window shrinks rather than that rows are shown twice.
    const [id, recordedAt] = this.shown.entries().next().value!;
    this.shown.delete(id);
    this.windowStart = Math.max(this.windowStart, Date.parse(recordedAt));
  }
}
