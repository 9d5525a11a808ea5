import type { RequestView } from '../requests/request-view.js';
import type { Recorded } from '../requests/requests.schema.js';

const PAGE = 500;
/** How far behind the high watermark rows are read again, in case the server's clock is set back a little. */
const OVERLAP_MS = 5_000;
/** An open transaction holds the high watermark back; it is waited for no longer than this. */
const MAX_WAIT_MS = 60_000;
/** IDs of shown rows that are kept at most: some 10 MB. */
const MAX_REMEMBERED = 50_000;

/** A position in the order in which rows were written. Without an ID: after every row of that time. */
export interface Place {
  recorded_at: string;
  id?: string;
}

/** Where the calls come from: the admin API, with the filter of the command. */
export interface TailSource {
  /** The newest calls, newest first. */
  newest(count: number): Promise<RequestView[]>;
  /** The calls after this position in the order in which they were written; none without a position. */
  recorded(after: Place | null, limit: number): Promise<Recorded>;
}

/**
 * Follows the log in the order in which Postgres stores its rows. Not by their start: a row is stored when its call ends,
 * or hours later from a journal. Not by `recorded_at` alone either: a row may become visible after one that was recorded
 * later. So the window after the high watermark is read again each time, and the IDs of the rows shown from it are kept.
 */
export class LogTail {
  /** `recorded_at` of the rows shown, by id: a corrected row has a later one and is shown again. */
  private readonly shown = new Map<string, string>();
  private windowStart = 0;
  private place: Place = { recorded_at: new Date(0).toISOString() };
  /** The high watermark before the first page of the window was read. */
  private completeUntil: number | null = null;

  constructor(private readonly source: TailSource) {}

  /** Starts at the end of the log. @returns the last `count` calls, oldest first */
  async begin(count: number): Promise<RequestView[]> {
    const { recorded_until: until } = await this.source.recorded(null, 1);
    this.startAt(Date.parse(until));
    if (count === 0) return [];
    const data = await this.source.newest(count);
    for (const row of data) this.remember(row);
    return data.reverse();
  }

  /** Returns the rows since the last call of this method, each once. `more`: there are already further rows. */
  async next(): Promise<{ rows: RequestView[]; more: boolean }> {
    const { data: page, recorded_until: until } = await this.source.recorded(this.place, PAGE);
    this.completeUntil ??= Date.parse(until);
    const rows = page.filter((row) => this.shown.get(row.id) !== row.recorded_at);
    for (const row of rows) this.remember(row);
    const last = page.at(-1);
    const more = page.length === PAGE;
    if (last !== undefined && more) this.place = { recorded_at: last.recorded_at, id: last.id };
    else this.startAt(this.nextWindow(this.completeUntil, last));
    return { rows, more };
  }

  private nextWindow(completeUntil: number, newest: RequestView | undefined): number {
    const seen = newest === undefined ? 0 : Date.parse(newest.recorded_at);
    return Math.max(this.windowStart, completeUntil - OVERLAP_MS, seen - MAX_WAIT_MS);
  }

  private startAt(ms: number): void {
    this.windowStart = ms;
    this.place = { recorded_at: new Date(ms).toISOString() };
    this.completeUntil = null;
    for (const [id, recordedAt] of this.shown) if (Date.parse(recordedAt) <= ms) this.shown.delete(id);
  }

  private remember(row: RequestView): void {
    this.shown.set(row.id, row.recorded_at);
    if (this.shown.size <= MAX_REMEMBERED) return;
    // Too many to keep: the window shrinks, so that no row is shown twice.
    const [id, recordedAt] = this.shown.entries().next().value!;
    this.shown.delete(id);
    this.windowStart = Math.max(this.windowStart, Date.parse(recordedAt));
  }
}
