import type { ArchivePage, ArchiveReader } from './log-archive.js';
import { type RequestFilter, startedAtOf } from './request-query.js';
import type { RequestView } from './request-view.js';

/** Rows of one query, which limits the memory. */
const ROWS = 2_000;
/** Calls of one query started in the same hour, so that the archive sorts no more than these. */
const HOUR_MS = 3_600_000;

/**
 * All rows of an archive in the order of the list, in pages. Each page is a whole response: an archive that fails halfway
 * cannot make the rows look complete.
 */
export async function* archivedPages(
  archive: ArchiveReader,
  filter: RequestFilter,
  { before: end, after, limit }: ArchivePage,
): AsyncGenerator<RequestView[]> {
  let left = limit;
  // The last row that the reader has may be of an older hour.
  let before = after === null ? end : new Date(Math.min(end.getTime(), after.startedAt.getTime() + 1));
  let place = after;
  while (left > 0) {
    const hour = Math.floor((before.getTime() - 1) / HOUR_MS) * HOUR_MS;
    const from = new Date(Math.max(hour, filter.from?.getTime() ?? hour));
    const page = { before, after: place, limit: Math.min(ROWS, left) };
    const rows = from < before ? await archive.list({ ...filter, from }, page) : [];
    if (rows.length > 0) yield rows;
    left -= rows.length;
    if (rows.length === page.limit) {
      const { id } = rows.at(-1)!;
      place = { startedAt: startedAtOf(id), id };
      continue;
    }
    before = from;
    if (rows.length > 0) continue;
    // Nothing in this hour: on to the one with the next older row.
    const newest = await archive.newest(filter, before);
    if (newest === null) return;
    before = new Date(newest.getTime() + 1);
  }
}
