import { And, type FindOperator, In, LessThan } from 'typeorm';
import { ServiceError } from '../errors/service-error.js';

/**
 * Which page of a list is asked for.
 *
 * Keyset paging, newest first: a cursor is the last ID of the previous page. IDs are UUIDv7, so they are in the order of
 * creation, and new rows neither repeat nor hide a row, as they would with OFFSET.
 */
export interface PageRequest {
  /** Rows per page, 1 to 500. */
  limit: number;
  /** `next_cursor` of the page before. */
  cursor?: string;
}

/** A page of a list, as the admin API returns it. */
export interface Page<T> {
  data: T[];
  /** null on the last page */
  next_cursor: string | null;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** True for a UUID in its canonical form. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/**
 * Returns the ID after which the page starts, or null for the first page.
 *
 * @throws ServiceError invalid for a cursor that no page returned
 */
export function idOfCursor(cursor: string | undefined): string | null {
  if (cursor === undefined) return null;
  const hex = Buffer.from(cursor, 'base64url').toString('hex');
  const id = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  // The version digit: other values of 16 bytes were not generated here.
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
 * Options with which `find()` reads the rows of pageOf(), newest first.
 *
 * @param ids of which rows; null: of all
 * @throws ServiceError invalid for a cursor that no page returned
 */
export function pageOptions({ limit, cursor }: PageRequest, ids: readonly string[] | null = null) {
  const after = idOfCursor(cursor);
  const conditions: FindOperator<string>[] = [
    ...(after === null ? [] : [LessThan(after)]),
    ...(ids === null ? [] : [In(ids) as FindOperator<string>]),
  ];
  return {
    where: conditions.length === 0 ? {} : { id: And(...conditions) },
    order: { id: 'DESC' },
    take: limit + 1,
  } as const;
}

/** Returns a page of rows that were read with `LIMIT limit + 1`: the extra row shows that there are more. */
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
