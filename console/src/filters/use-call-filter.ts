import { useMemo } from 'react';
import { useUrlState } from '../url/url-state';
import { type CallFilter, FIELDS, type FieldName } from './fields';

const NAMES = Object.keys(FIELDS) as FieldName[];

/** The filter in the URL of the page, of those fields that it has. */
export function useCallFilter(fields: readonly FieldName[] = NAMES): CallFilter {
  const [url] = useUrlState();
  const chosen = NAMES.filter((name) => fields.includes(name)).map((name) => [name, url[name]] as const);
  const key = JSON.stringify(chosen);
  return useMemo(
    () =>
      Object.fromEntries(
        (JSON.parse(key) as typeof chosen).filter(([, value]) => value !== undefined && value !== null),
      ) as CallFilter,
    [key],
  );
}
