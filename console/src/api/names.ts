import { useQuery } from '@tanstack/react-query';
import { api } from './client';

/** Teams and keys to choose from. The first 500 of each: a filter takes any ID or name beyond those, too. */

const STALE_MS = 60_000;

export function useTeams(enabled = true) {
  return useQuery({
    queryKey: ['teams', 'names'],
    queryFn: ({ signal }) => api.get('/admin/v1/teams', { query: { limit: 500 }, signal }),
    staleTime: STALE_MS,
    enabled,
  });
}

export function useKeys(enabled = true) {
  return useQuery({
    queryKey: ['keys', 'names'],
    queryFn: ({ signal }) => api.get('/admin/v1/keys', { query: { limit: 500 }, signal }),
    staleTime: STALE_MS,
    enabled,
  });
}
