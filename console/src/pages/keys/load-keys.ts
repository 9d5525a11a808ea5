import { api, type operations, type ResponseOf } from '../../api/client';
import type { Sort } from '../../table/data-table';
import type { Key } from './key';

type KeyQuery = NonNullable<operations['listKeys']['parameters']['query']>;

/** Columns and what the gateway sorts them by. */
const SORTS: Readonly<Record<string, KeyQuery['sort']>> = {
  team: 'name',
  expires: 'expires',
  used: 'last_used',
};

/** Whether the order is that of the usage in the range of the page. */
export function isByUsage(sort: Sort | undefined): sort is Sort & { id: 'cost' | 'calls' } {
  return sort?.id === 'cost' || sort?.id === 'calls';
}

interface Page {
  data: Key[];
  next_cursor: string | null;
}

/** As many IDs as the API takes. */
const IDS = 100;
/** A filter may leave nothing of many pages; after these, the user goes on. */
const MAX_PAGES = 10;

/** One page of keys in an order. Keys by usage are those with calls in the range. */
export async function loadKeys(
  filter: KeyQuery,
  sort: Sort | undefined,
  range: { from: string; to: string },
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<Page> {
  if (!isByUsage(sort)) {
    const by = sort && SORTS[sort.id];
    const order = by && (sort.desc ? 'desc' : 'asc');
    return api.get('/admin/v1/keys', { query: { ...filter, sort: by, order, cursor }, signal });
  }
  let next = cursor;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const query = { ...range, team: filter.team, group_by: 'key', sort: sort.id, limit: IDS, cursor: next };
    const usage: ResponseOf<'/admin/v1/usage', 'get'> = await api.get('/admin/v1/usage', { query, signal });
    next = usage.next_cursor ?? undefined;
    const ids = usage.data.flatMap(({ key_id }) => key_id ?? []);
    if (ids.length === 0) break;
    const keys = await api.get('/admin/v1/keys', {
      query: { ...filter, id: ids.join(), limit: IDS },
      signal,
    });
    const byId = new Map(keys.data.map((key) => [key.id, key]));
    const data = ids.flatMap((id) => byId.get(id) ?? []);
    if (data.length > 0 || next === undefined) return { data, next_cursor: next ?? null };
  }
  return { data: [], next_cursor: null };
}
