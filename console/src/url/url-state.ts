import { useNavigate, useSearch } from '@tanstack/react-router';
import { useCallback } from 'react';

const usePageSearch = () => useSearch({ strict: false });

/** What the query of a page's URL holds. Filters, periods, open drawers: everything that a link should show again. */
export type UrlState = ReturnType<typeof usePageSearch>;
/** Members by name with what was typed or chosen: the URL holds text, and the route judges it when it is read. */
export type UrlPatch = { readonly [Name in keyof UrlState]?: string };
export type SetUrlState = (patch: UrlPatch, options?: { replace?: boolean }) => void;

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
  const state = usePageSearch();
  const navigate = useNavigate();
  const set = useCallback<SetUrlState>(
    (patch, { replace = false } = {}) =>
      void navigate({
        to: '.',
        search: (previous) => ({ ...previous, ...(patch as UrlState) }),
        replace,
        resetScroll: false,
      }),
    [navigate],
  );
  return [state, set];
}

/** The members that a link to another page takes along: the time range and the time zone. */
export function sharedState({
  range,
  from,
  to,
  tz,
}: UrlState): Pick<UrlState, 'range' | 'from' | 'to' | 'tz'> {
  return { range, from, to, tz };
}

/** What a link takes along to a page whose range at first is another one. @param range of this page at first */
export function withRange(url: UrlState, range: string): ReturnType<typeof sharedState> {
  const shared = sharedState(url);
  return shared.range === undefined && shared.from === undefined ? { ...shared, range } : shared;
}

/** One member of a search, of which the name is not known before. */
export function memberOf<Name extends string>(name: Name, value: string): { [N in Name]?: string } {
  return { [name]: value } as { [N in Name]?: string };
}
