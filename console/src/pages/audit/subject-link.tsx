import type { ReactNode } from 'react';
import { PageLink } from '../../display/links';
import { sharedState, useUrlState } from '../../url/url-state';
import type { AuditEntry } from './diff';

type Shared = ReturnType<typeof sharedState>;

/** By type of object: a link to the page that shows it as it is now. */
const LINKS: Readonly<Record<string, (entry: AuditEntry, shared: Shared, children: ReactNode) => ReactNode>> =
  {
    key: ({ subject_id: key }, shared, children) => (
      <PageLink to="/keys" search={{ ...shared, key: key ?? undefined }} inherit>
        {children}
      </PageLink>
    ),
    team: ({ subject_id: open }, shared, children) => (
      <PageLink to="/teams" search={{ ...shared, open: open ?? undefined }} inherit>
        {children}
      </PageLink>
    ),
    // The list of groups is below that of the teams.
    group: (_, shared, children) => (
      <PageLink to="/teams" search={shared} inherit>
        {children}
      </PageLink>
    ),
    provider: ({ subject_name: open }, shared, children) => (
      <PageLink to="/providers" search={{ ...shared, open }} inherit>
        {children}
      </PageLink>
    ),
    route: ({ subject_name: open }, shared, children) => (
      <PageLink to="/providers" search={{ ...shared, open }} inherit>
        {children}
      </PageLink>
    ),
    // Its own prices only, of which there are few: the list has it.
    price: (entry, shared, children) => (
      <PageLink
        to="/prices"
        search={{ ...shared, ...priceOf(entry), open: entry.subject_id ?? undefined }}
        inherit
      >
        {children}
      </PageLink>
    ),
    webhook: ({ subject_id: open }, shared, children) => (
      <PageLink to="/webhooks" search={{ ...shared, open: open ?? undefined }} inherit>
        {children}
      </PageLink>
    ),
    policy: ({ subject_id: open }, shared, children) => (
      <PageLink to="/policies" search={{ ...shared, open: open ?? undefined }} inherit>
        {children}
      </PageLink>
    ),
    sink: ({ subject_id: open }, shared, children) => (
      <PageLink to="/sinks" search={{ ...shared, open: open ?? undefined }} inherit>
        {children}
      </PageLink>
    ),
    person: ({ subject_id: open }, shared, children) => (
      <PageLink to="/people" search={{ ...shared, open: open ?? undefined }} inherit>
        {children}
      </PageLink>
    ),
    trust: ({ subject_id: open }, shared, children) => (
      <PageLink to="/trusts" search={{ ...shared, open: open ?? undefined }} inherit>
        {children}
      </PageLink>
    ),
    token: (_, shared, children) => (
      <PageLink to="/access" search={shared} inherit>
        {children}
      </PageLink>
    ),
  };

/** What is gone, and what never was an object with a page. */
const WITHOUT: readonly string[] = ['removed', 'repriced'];

/** Whether there is a page that shows the object. A key that was revoked is still there, a token is not. */
export function isLinked({ action, subject_type: type }: AuditEntry): boolean {
  return (
    Object.hasOwn(LINKS, type) && !WITHOUT.includes(action) && !(type === 'token' && action === 'revoked')
  );
}

/** Leads to the object that was changed, if it has a page that shows it as it is now. */
export function SubjectLink({ entry, children }: { entry: AuditEntry; children: ReactNode }) {
  const [url] = useUrlState();
  return isLinked(entry) ? LINKS[entry.subject_type]!(entry, sharedState(url), children) : children;
}

/** The filter that leaves the price in a list of any length. Names are `price list/model`, and only models have a slash. */
function priceOf({ subject_name: name }: AuditEntry): { catalog: string; model: string } {
  const end = name.indexOf('/');
  return { catalog: name.slice(0, end), model: name.slice(end + 1) };
}
