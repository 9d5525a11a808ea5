import { useQuery } from '@tanstack/react-query';
import { type ComponentType, createElement, type ReactNode } from 'react';
import { ApiError } from '../api/client';
import { ErrorAlert } from '../display/error-alert';

const TIMEOUT_S = 30;

/**
 * Loads a part of the console that is a file of its own. @throws ApiError if it does not come: the router would load the
 * whole page again for the browser's own error, and without a gateway that is the browser's error page.
 */
export async function loadPart<Part>(load: () => Promise<Part>): Promise<Part> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('It took too long.')), TIMEOUT_S * 1_000);
  });
  try {
    return await Promise.race([load(), tooLate]);
  } catch (cause) {
    throw new ApiError(
      'This part of the console could not be loaded. The gateway does not respond, or it was updated meanwhile.',
      { status: 0, code: 'not_loaded', cause },
    );
  } finally {
    clearTimeout(timer);
  }
}

/**
 * A component that is a file of its own, loaded where it is shown. If it does not come, its place says so and offers to try
 * again: `lazy` would take the whole page away, and would remember the failure.
 *
 * @param name of its query
 */
export function partOf<Props extends object>(
  name: string,
  load: () => Promise<{ default: ComponentType<Props> }>,
  whileLoading: (props: Props) => ReactNode,
): ComponentType<Props> {
  const part = {
    queryKey: ['part', name],
    queryFn: async () => loadPart(load),
    staleTime: Infinity,
    structuralSharing: false,
  };
  return function Part(props: Props) {
    const { data, error, refetch } = useQuery(part);
    if (data !== undefined) return createElement(data.default, props);
    if (error !== null) return createElement(ErrorAlert, { error, retry: () => void refetch() });
    return whileLoading(props);
  };
}
