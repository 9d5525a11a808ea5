import { type QueryClient, useMutationState } from '@tanstack/react-query';

/** The key of the mutation that removes what has this ID. */
export const removalKey = (id: string) => ['remove', id];

/**
 * Whether what has this ID is being removed (`pending`) or is gone (`success`). Queries for it are disabled then: an answer
 * to one would be that it is not found.
 */
export function useRemoval(id: string | undefined): 'pending' | 'success' | undefined {
  const removals = useMutationState({
    filters: { mutationKey: removalKey(id ?? '') },
    select: ({ state }) => state.status,
  });
  if (removals.includes('success')) return 'success';
  return removals.includes('pending') ? 'pending' : undefined;
}

/** Cancels requests for what has this ID that are under way. */
export function cancelReads(client: QueryClient, id: string): Promise<void> {
  return client.cancelQueries({ predicate: ({ queryKey }) => queryKey.includes(id) });
}
