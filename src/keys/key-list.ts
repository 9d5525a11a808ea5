import { idOfCursor, isUuid, type Page, pageOf } from '../database/page.js';
import { patternsOf } from '../database/search-text.js';
import { ServiceError } from '../errors/service-error.js';
import type { Scope } from '../admin/access/access.js';
import { EFFECTIVE_CONTACT, EFFECTIVE_COST_CENTER, EFFECTIVE_OWNER } from '../teams/annotations.js';
import { KEY_STATUS_SQL, type KeyRow, keyView, LAST_EXPIRY_SQL, selectKeys } from './key-view.js';
import type { KeyFilter, KeySort, KeyView } from './keys.schema.js';

/** What keys can be sorted by beside their creation, with the type of the value. */
const SORTS: Record<Exclude<KeySort, 'created'>, { sql: string; type: string }> = {
  // No name contains a control character.
  name: { sql: `(lower(t.name) || chr(1) || lower(k.name)) COLLATE "C"`, type: 'text' },
  // Those that never expire come after those that do, and those that have ended last.
  expires: {
    sql: `CASE WHEN k.revoked_at IS NOT NULL OR k.expires_at <= now() THEN 'infinity'
               ELSE COALESCE(k.expires_at, '9999-12-31Z') END`,
    type: 'timestamptz',
  },
  last_used: { sql: `COALESCE(s.last_used_at, '-infinity')`, type: 'timestamptz' },
};

/** The words that a search looks for. */
const SEARCHED = `concat_ws(E'\n', t.name, k.name, ${EFFECTIVE_OWNER}, ${EFFECTIVE_CONTACT})`;

const FILTERED = `
  WHERE ($1::uuid IS NULL OR k.team_id = $1)
    AND ($2::text IS NULL OR EXISTS (
      SELECT FROM gateway_key_secret WHERE key_id = k.id AND kind = 'key' AND starts_with(prefix, $2)))
    AND ($3::text IS NULL OR $3 = ${KEY_STATUS_SQL})
    AND ($5::text IS NULL OR k.name = $5)
    AND ($7::uuid[] IS NULL OR k.team_id = ANY ($7))
    AND ($8::text[] IS NULL OR ${SEARCHED} ILIKE ALL ($8))
    AND ($9::uuid[] IS NULL OR k.id = ANY ($9))
    AND ($10::timestamptz IS NULL OR ${LAST_EXPIRY_SQL} < $10)
    AND ($11::timestamptz IS NULL OR COALESCE(s.last_used_at, k.created_at) < $11)
    AND ($12::text IS NULL OR ${EFFECTIVE_CONTACT} = $12)
    AND ($13::text IS NULL OR ${EFFECTIVE_COST_CENTER} = $13)
    AND ($14::text IS NULL OR ${EFFECTIVE_OWNER} = $14)`;

type ListedRow = KeyRow & { sorted?: string };

/** A page of keys. */
export interface KeyQuery {
  text: string;
  values: unknown[];
  page: (rows: readonly ListedRow[]) => Page<KeyView>;
}

/**
 * The statement that lists keys.
 *
 * @param teamId of the filter's team @throws ServiceError invalid for a foreign cursor
 */
export function listQuery(
  {
    name,
    prefix,
    status,
    search,
    id,
    expires_before,
    unused_since,
    owner,
    contact,
    cost_center,
    ...page
  }: KeyFilter,
  teamId: string | null,
  scope: Scope,
): KeyQuery {
  const { sort = 'created', order = sort === 'created' ? 'desc' : 'asc', limit, cursor } = page;
  const isPrefix = search !== undefined && PREFIX.test(search);
  const filter = (after: string | null) => [
    teamId,
    prefix ?? (isPrefix ? search : null),
    status ?? null,
    after,
    name ?? null,
    limit + 1,
    scope,
    search === undefined || isPrefix ? null : patternsOf(search),
    id ?? null,
    expires_before ?? null,
    unused_since ?? null,
    contact ?? null,
    cost_center ?? null,
    owner ?? null,
  ];
  const comparison = order === 'asc' ? '>' : '<';
  if (sort === 'created')
    return {
      text: `${selectKeys()} ${FILTERED} AND ($4::uuid IS NULL OR k.id ${comparison} $4)
        ORDER BY k.id ${order} LIMIT $6`,
      values: filter(idOfCursor(cursor)),
      page: (rows) => pageOf(rows, limit, keyView),
    };
  const { sql, type } = SORTS[sort];
  const after = cursor === undefined ? null : placeOf(cursor, sort);
  return {
    text: `SELECT * FROM (${selectKeys(`(${sql})::text AS sorted, (${sql}) AS place,`)} ${FILTERED}) AS k
      WHERE ($4::uuid IS NULL OR (place, id) ${comparison} ($15::${type}, $4))
      ORDER BY place ${order}, id ${order} LIMIT $6`,
    values: [...filter(after?.id ?? null), after?.value ?? null],
    page: (rows) => {
      const shown = rows.slice(0, limit);
      const last = shown.at(-1);
      return {
        data: shown.map(keyView),
        next_cursor: rows.length > limit && last ? cursorOf([sort, last.sorted!, last.id]) : null,
      };
    },
  };
}

/** The beginning of a secret, as lists show it. */
const PREFIX = /^ptn_[0-9A-Za-z]{0,8}$/;

function cursorOf(place: readonly string[]): string {
  return Buffer.from(JSON.stringify(place)).toString('base64url');
}

const TIME = /^(-?infinity|\d{4,5}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?[+-]\d\d(:\d\d){0,2})$/;

/** @throws ServiceError invalid for a cursor that no page in this order returned */
function placeOf(cursor: string, sort: KeySort): { value: string; id: string } {
  try {
    const place = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown;
    if (Array.isArray(place) && place.length === 3 && place[0] === sort) {
      const [, value, id] = place as unknown[];
      const isValue =
        typeof value === 'string' && (sort === 'name' ? !value.includes('\0') : TIME.test(value));
      if (isValue && typeof id === 'string' && isUuid(id)) return { value, id };
    }
  } catch {
    // Not JSON: the same error.
  }
  throw ServiceError.of(
    'invalid',
    'cursor',
    'must be the next_cursor of a page with the same sort; leave it out to begin',
  );
}
