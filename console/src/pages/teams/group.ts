import { queryOptions } from '@tanstack/react-query';
import { api, type ResponseOf } from '../../api/client';
import { loadAll } from '../../api/load-all';

export type TeamGroup = ResponseOf<'/admin/v1/groups/{id}', 'get'>;

/** All groups, which members of teams do not see. */
export const groupsQuery = queryOptions({
  queryKey: ['groups'],
  queryFn: ({ signal }) => loadAll((query) => api.get('/admin/v1/groups', { query, signal })),
});

/** First members of the keys of the queries that show a group. */
export const GROUP_LISTS = ['groups', 'teams', 'team', 'usage', 'limits'] as const;
