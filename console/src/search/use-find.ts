import { useMutation, useQuery } from '@tanstack/react-query';
import { api, ApiError, type ResponseOf } from '../api/client';
import { isForLog } from './search-text';

type SearchResult = ResponseOf<'/admin/v1/search', 'get'>;
export type Found = SearchResult['data'][number];
/** The key of a whole secret. */
export type FoundKey = ResponseOf<'/admin/v1/keys/find', 'post'>;

const STALE_MS = 15_000;

/** What is found at once: by IDs and by parts of names. */
export function useNamed(text: string) {
  return useQuery({
    queryKey: ['search', 'names', text],
    queryFn: ({ signal }) => api.get('/admin/v1/search', { query: { q: text, in: 'names' }, signal }),
    enabled: text !== '',
    staleTime: STALE_MS,
    gcTime: STALE_MS,
  });
}

/** What only the request log knows, up to a time. The gateway reads it for two seconds at most. */
export function useLogged(text: string, before: string | undefined, enabled: boolean) {
  return useQuery({
    queryKey: ['search', 'log', text, before],
    queryFn: ({ signal }) => api.get('/admin/v1/search', { query: { q: text, in: 'log', before }, signal }),
    enabled: enabled && isForLog(text),
    staleTime: STALE_MS,
    gcTime: STALE_MS,
    retry: false,
  });
}

/** The key of a whole secret, which stays in no cache; null if it is none of this gateway's. */
export function useFindKey() {
  return useMutation({
    mutationFn: async (key: string) => {
      try {
        return await api.post('/admin/v1/keys/find', { body: { key } });
      } catch (error) {
        if (error instanceof ApiError && (error.status === 404 || error.status === 400)) return null;
        throw error;
      }
    },
    gcTime: 0,
  });
}
