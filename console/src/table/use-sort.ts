import { useMemo } from 'react';
import { useUrlState } from '../url/url-state';
import type { Sort } from './data-table';

/** The order of the page's table, in the URL. @param fallback the order at first, which the URL does not name */
export function useSort(fallback?: Sort): {
  sort: Sort | undefined;
  onSort: (sort: Sort | undefined) => void;
} {
  const [{ sort: id, order }, setUrl] = useUrlState();
  return {
    sort: useMemo(() => (id === undefined ? fallback : { id, desc: order === 'desc' }), [id, order]),
    onSort: (sort) =>
      setUrl({ sort: sort?.id, order: sort && (sort.desc ? 'desc' : 'asc') }, { replace: true }),
  };
}
