import { useInfiniteQuery } from '@tanstack/react-query';

interface Page<Row> {
  data: Row[];
  next_cursor: string | null;
}

/**
 * The pages of a list that the API pages by cursor.
 *
 * @param key of the query; the filter belongs in it
 * @param load one page, from a cursor on
 * @param keeps whether the rows of another key are shown until those of this one are there; absent: always
 */
export function usePages<Row, P extends Page<Row> = Page<Row>>(
  key: readonly unknown[],
  load: (cursor: string | undefined, signal: AbortSignal) => Promise<P>,
  {
    keeps = () => true,
    ...options
  }: {
    enabled?: boolean;
    refetchInterval?: number | false;
    keeps?: (key: readonly unknown[]) => boolean;
  } = {},
) {
  const query = useInfiniteQuery({
    queryKey: [...key, 'pages'],
    queryFn: ({ pageParam, signal }) => load(pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    placeholderData: (previous, query) =>
      query !== undefined && keeps(query.queryKey) ? previous : undefined,
    ...options,
  });
  return { ...query, rows: query.data?.pages.flatMap((page) => page.data), first: query.data?.pages[0] };
}
