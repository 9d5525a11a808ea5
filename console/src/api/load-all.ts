import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api } from './client';

/** The API's largest page. */
const PAGE = 500;
/** Nobody looks through more at once, and the gateway need not serve more. */
const MAX_PAGES = 10;

export interface Whole<Row> {
  rows: Row[];
  /** False if there are more than could be loaded. */
  complete: boolean;
}

/** Loads the pages of a list until its end, at most 5,000 entries. */
export async function loadAll<Row>(
  load: (page: {
    limit: number;
    cursor: string | undefined;
  }) => Promise<{ data: Row[]; next_cursor: string | null }>,
): Promise<Whole<Row>> {
  const rows: Row[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const { data, next_cursor } = await load({ limit: PAGE, cursor });
    rows.push(...data);
    if (next_cursor === null) return { rows, complete: true };
    cursor = next_cursor;
  }
  return { rows, complete: false };
}

/** All teams, for lists to choose from. */
export const teamsQuery = queryOptions({
  queryKey: ['teams', 'all'],
  queryFn: ({ signal }) => loadAll((query) => api.get('/admin/v1/teams', { query, signal })),
  placeholderData: keepPreviousData,
});

/** All limits and budgets with what is used of them. */
export const limitsQuery = queryOptions({
  queryKey: ['limits', 'all'],
  queryFn: ({ signal }) => loadAll((query) => api.get('/admin/v1/limits', { query, signal })),
  placeholderData: keepPreviousData,
});

/** What needs somebody now. */
export const attentionQuery = queryOptions({
  queryKey: ['attention'],
  queryFn: ({ signal }) => api.get('/admin/v1/attention', { signal }),
  refetchInterval: 30_000,
});

/** All providers. */
export const providersQuery = queryOptions({
  queryKey: ['providers'],
  queryFn: ({ signal }) => api.get('/admin/v1/providers', { signal }),
});
