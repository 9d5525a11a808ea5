import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';

interface Page<Row> {
  data: Row[];
  next_cursor: string | null;
}

/**
 * The pages of a list that the API pages by cursor.
 *
 * @param key of the query; the filter belongs in it
 * @param load one page, from a cursor on
 */
export function usePages<Row, P extends Page<Row> = Page<Row>>(
  key: readonly unknown[],
  load: (cursor: string | undefined, signal: AbortSignal) => Promise<P>,
  options: { enabled?: boolean; refetchInterval?: number | false } = {},
) {
  const query = useInfiniteQuery({
    queryKey: [...key, 'pages'],
    queryFn: ({ pageParam, signal }) => load(pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    placeholderData: keepPreviousData,
    ...options,
  });
  return { ...query, rows: query.data?.pages.flatMap((page) => page.data), first: query.data?.pages[0] };
}
