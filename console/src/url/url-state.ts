import { useNavigate, useSearch } from '@tanstack/react-router';
import { useCallback } from 'react';

/** What the query of the page's URL holds. Filters, periods, open drawers: everything that a link should show again. */
export type UrlState = Readonly<Record<string, string | undefined>>;
export type SetUrlState = (patch: UrlState, options?: { replace?: boolean }) => void;

/** The search string as plain text values, without the JSON that the router would write. */
export function parseSearch(search: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(search));
}

export function stringifySearch(search: Record<string, unknown>): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    if (typeof value === 'string' && value !== '') params.set(name, value);
  }
  const text = params.toString();
  return text === '' ? '' : `?${text}`;
}

/** The state in the URL, and a function that changes the named members and leaves the others. */
export function useUrlState(): [UrlState, SetUrlState] {
  const state = useSearch({ strict: false }) as UrlState;
  const navigate = useNavigate();
  const set = useCallback<SetUrlState>(
    (patch, { replace = false } = {}) =>
      void navigate({
        to: '.',
        search: (previous: UrlState) => ({ ...previous, ...patch }),
        replace,
        resetScroll: false,
      }),
    [navigate],
  );
  return [state, set];
}

/** The members that a link to another page takes along: the time range and the time zone. */
export function sharedState({ range, from, to, tz }: UrlState): UrlState {
  return { range, from, to, tz };
}
