import { useMutation, useQueryClient } from '@tanstack/react-query';
import { ApiError } from '../api/client';

/**
 * Sends what a form holds. Spread `form` into its FormModal; `rejected` tells what is wrong with its fields.
 *
 * @param lists first members of the keys of the queries that show it, which are read again
 * @param onSaved called when they are there
 */
export function useSave<Result>(
  send: () => Promise<Result>,
  lists: readonly string[],
  onSaved?: (result: Result) => void,
) {
  const client = useQueryClient();
  const { mutate, isPending, error, data } = useMutation({
    mutationFn: send,
    // Secrets, which some responses have, stay in no cache.
    gcTime: 0,
    onSuccess: async (result) => {
      await Promise.all(lists.map((name) => client.invalidateQueries({ queryKey: [name] })));
      onSaved?.(result);
    },
  });
  const rejected = error instanceof ApiError ? error : undefined;
  return { form: { onSubmit: () => mutate(), pending: isPending, error }, rejected, data };
}
