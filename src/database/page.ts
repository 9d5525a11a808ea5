import { ServiceError } from '../errors/service-error.js';

/**
 * Keyset paging, newest first: a cursor is the last id of the page before. Ids are UUIDv7, so their order is that of
 * creation, and rows that arrive meanwhile neither repeat nor hide one, as they would with OFFSET.
 */
export interface PageRequest {
  /** Rows per page, 1 to 500. */
  limit: number;
  /** `next_cursor` of the page before. */
  cursor?: string;
}

export interface Page<T> {
  data: T[];
  /** null on the last page */
  next_cursor: string | null;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** True for the one form in which ids are shown. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/**
 * The id after which the page begins, or null for the first page.
 *
 * @throws ServiceError invalid for a cursor that no page gave
 */
export function idOfCursor(cursor: string | undefined): string | null {
  if (cursor === undefined) return null;
  const hex = Buffer.from(cursor, 'base64url').toString('hex');
  const id = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  // The version's digit: whatever else decodes to 16 bytes was not given by us.
  if (!isUuid(id) || id[14] !== '7' || cursorOf(id) !== cursor) {
    throw ServiceError.of(
      'invalid',
      'cursor',
      'must be the next_cursor of a page before; leave it out to begin',
    );
  }
  return id;
}

/**
 * Makes a page of rows that were asked for with `LIMIT limit + 1`: the one too many only tells that there is more.
 */
export function pageOf<Row extends { id: string }, T>(
  rows: readonly Row[],
  limit: number,
  view: (row: Row) => T,
): Page<T> {
  const shown = rows.slice(0, limit);
  return {
    data: shown.map(view),
    next_cursor: rows.length > limit ? cursorOf(shown.at(-1)!.id) : null,
  };
}

function cursorOf(id: string): string {
  return Buffer.from(id.replaceAll('-', ''), 'hex').toString('base64url');
}
