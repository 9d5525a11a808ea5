import { createContext, use } from 'react';
import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { api, type ResponseOf } from '../api/client';

type Key = ResponseOf<'/admin/v1/keys/{id}', 'get'>;

type SessionState = ResponseOf<'/admin/v1/session', 'get'> & {
  /** Whoever was signed in has left by signing out: what this page shows is not kept. */
  left?: true;
};
/** Who is signed in, as the gateway says. */
export type Session = NonNullable<SessionState['session']>;

export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: ({ signal }): Promise<SessionState> => api.get('/admin/v1/session', { signal }),
  staleTime: 60_000,
  retry: 1,
});

export function useSession() {
  return useQuery(sessionQuery);
}

/** Whose page it is: also after the session has ended, so that nothing disappears that was begun. */
export const ShownSession = createContext<Session | undefined>(undefined);

/** Whether the one who is signed in may make changes. The gateway decides; this only hides what it would reject. */
export function useMayChange(): boolean {
  return use(ShownSession)?.role === 'admin';
}

/** Members and leads of teams see the data of these alone. */
export function ofTeams({ role }: Session): boolean {
  return role === 'team' || role === 'lead';
}

/** Whether only the data of some teams is shown: there are no providers, prices, changes and processes to see then. */
export function useIsMember(): boolean {
  const session = use(ShownSession);
  return session !== undefined && ofTeams(session);
}

/** Whether the one who is signed in leads the teams that they see: manages all their keys, within the teams' limits. */
export function useLeads(): boolean {
  return use(ShownSession)?.role === 'lead';
}

/** Whether the one who is signed in may rotate and revoke a key: it is an own one, or of a team that one leads. */
export function useIsOwn(): (key: Pick<Key, 'self_service' | 'owner' | 'owner_id'>) => boolean {
  const session = use(ShownSession);
  // Keys that an earlier version created have only the name of their owner.
  return ({ self_service: isMembers, owner, owner_id: id }) =>
    session?.role === 'lead' ||
    (session?.role === 'team' &&
      isMembers &&
      (id === null ? owner === session.actor : id === session.user_id));
}

/** @param keeps the one whose page stays open if the same one signs in again; absent: all that was read is forgotten */
export function useSignIn(keeps?: Session) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (token: string) => api.post('/admin/v1/session', { body: { token } }),
    // The token stays in no cache: neither in the variables of the mutation nor in its result.
    gcTime: 0,
    onSuccess: async () => {
      if (keeps === undefined)
        client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'session' });
      await client.invalidateQueries(keeps === undefined ? sessionQuery : {});
    },
  });
}

export function useSignOut() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => api.delete('/admin/v1/session'),
    onSuccess: () => {
      // The session itself stays, or what shows it would not hear of its end.
      client.setQueryData(
        sessionQuery.queryKey,
        (state) => state && { ...state, session: null, left: true as const },
      );
      client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'session' });
    },
  });
}
