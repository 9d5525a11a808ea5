import { Button } from '@mantine/core';
import type { ReactNode } from 'react';
import { EmptyState } from '../display/empty-state';
import { type UrlState, useUrlState } from '../url/url-state';

/** What a list shows if its filter leaves nothing, and the way back to the whole list. */
export function NoMatch({
  title,
  all,
  filters,
  children,
}: {
  title: string;
  /** What the list holds: "keys". */
  all: string;
  /** The members of the URL that filter it. */
  filters: readonly (keyof UrlState)[];
  children: ReactNode;
}) {
  const [, setUrl] = useUrlState();
  const clear = () => setUrl(Object.fromEntries(filters.map((name) => [name, undefined])));
  return (
    <EmptyState
      title={title}
      action={
        <Button variant="default" onClick={clear}>
          Show all {all}
        </Button>
      }
    >
      {children}
    </EmptyState>
  );
}
