import { Box, Center } from '@mantine/core';
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  useLocation,
} from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense, useEffect, useState } from 'react';
import { useQueryClient } from '@tanstack/react-query';
import { ApiError } from '../api/client';
import { QUERY_VALUES } from '../api/query-values';
import { EmptyState } from '../display/empty-state';
import { ErrorAlert } from '../display/error-alert';
import { PageLink } from '../display/links';
import { LoadingRows } from '../display/loading';
import { PageHeader } from '../display/page-header';
import { searchParams } from '../url/search';
import { parseSearch, stringifySearch } from '../url/url-state';
import { Layout } from './layout';
import { loadPart } from './lazy-part';
import { PAGES } from './navigation';
import { type Session, sessionQuery, ShownSession, useSession } from './session';

/** Not loaded by those who are signed in already. */
const SignIn = lazy(async () => ({ default: (await loadPart(() => import('./sign-in'))).SignIn }));
const SignInAgain = lazy(() => loadPart(() => import('./sign-in-again')));

/** A page that is loaded when it is opened. */
const lazyPage: typeof lazyRouteComponent = (load, exportName) =>
  lazyRouteComponent(() => loadPart(load), exportName);

function NotFound(): ReactNode {
  return (
    <>
      <PageHeader title="Page not found" />
      <EmptyState
        title="There is no page at this address"
        action={<PageLink to="/">Go to the overview</PageLink>}
      />
    </>
  );
}

const root = createRootRoute({
  // The time range and zone, which links from page to page take along.
  validateSearch: searchParams(['range', 'from', 'to', 'tz'], {}),
  component: Outlet,
});

/** What only somebody who is signed in sees. */
const signedIn = createRoute({ getParentRoute: () => root, id: 'signed-in', component: SignedIn });

function SignedIn(): ReactNode {
  const { data, error, refetch } = useSession();
  const [known, setKnown] = useState<Session>();
  const session = data?.session ?? undefined;
  const isSomebodyElse =
    session !== undefined &&
    known !== undefined &&
    (session.user_id !== known.user_id || session.role !== known.role);
  // Whoever takes over an open page must not see what it has read and holds.
  useEffect(() => {
    if (isSomebodyElse) window.location.reload();
  }, [isSomebodyElse]);
  if (isSomebodyElse) return null;
  if (session !== undefined && session !== known) setKnown(session);
  if (data?.left === true && known !== undefined) setKnown(undefined);
  if (data === undefined) {
    return (
      <Center mih="100vh" p="md" component="main">
        <Box w="100%" maw={480}>
          <PageHeader title={error === null ? 'Loading …' : 'Postern'} />
          {error === null ? (
            <LoadingRows rows={3} />
          ) : (
            <ErrorAlert error={error} retry={() => void refetch()} />
          )}
        </Box>
      </Center>
    );
  }
  const shown = session ?? known;
  if (shown === undefined) {
    return (
      <Suspense fallback={null}>
        <SignIn />
      </Suspense>
    );
  }
  // A session that has ended leaves the page and its open form where they are, below the sign-in.
  return (
    <>
      <ShownSession value={shown}>
        <Layout session={shown} />
      </ShownSession>
      {session === undefined && (
        <Suspense fallback={null}>
          <SignInAgain as={shown} />
        </Suspense>
      )}
    </>
  );
}

/** Filters of calls. */
const CALL_TEXTS = [
  'group',
  'team',
  'key',
  'owner',
  'cost_center',
  'provider',
  'model',
  'status',
  'provider_error',
  'end_user',
  'session',
  'subject',
  'tag',
] as const;
const CALL_CHOICES = {
  outcome: QUERY_VALUES.listRequests.outcome,
  failed: QUERY_VALUES.listRequests.failed,
  usage_final: QUERY_VALUES.listRequests.usage_final,
};

const ORDERS = ['asc', 'desc'] as const;

const signedInPage = { getParentRoute: () => signedIn };

// In arrays of their own: as arguments of addChildren() routes would lose the types of their search.
const signedInPages = [
  createRoute({
    ...signedInPage,
    path: '/',
    validateSearch: searchParams(['metric', 'by'], {}),
    component: lazyPage(() => import('../pages/overview/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/usage',
    validateSearch: searchParams(
      ['metric', 'by', 'then', 'sort', 'min_duration_ms', ...CALL_TEXTS],
      CALL_CHOICES,
    ),
    component: lazyPage(() => import('../pages/usage/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/requests',
    validateSearch: searchParams(
      ['id', 'columns', 'live', 'rejected', 'min_duration_ms', ...CALL_TEXTS],
      CALL_CHOICES,
    ),
    component: lazyPage(() => import('../pages/requests/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/keys',
    validateSearch: searchParams(
      ['q', 'team', 'owner', 'cost_center', 'expires_before', 'unused_since', 'key', 'edit', 'new', 'find'],
      { ...QUERY_VALUES.listKeys, sort: ['team', 'expires', 'used', 'calls', 'cost'], order: ORDERS },
    ),
    component: lazyPage(() => import('../pages/keys/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/teams',
    validateSearch: searchParams(['q', 'group', 'owner', 'cost_center', 'open', 'edit', 'new', 'sort'], {
      order: ORDERS,
    }),
    component: lazyPage(() => import('../pages/teams/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/limits',
    validateSearch: searchParams(['team', 'key', 'id', 'provider', 'model', 'rejected'], {
      ...QUERY_VALUES.listLimits,
      view: ['urgency'],
    }),
    component: lazyPage(() => import('../pages/limits/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/providers',
    validateSearch: searchParams(['open', 'new', 'team'], {}),
    component: lazyPage(() => import('../pages/providers/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/jobs',
    validateSearch: searchParams([], { jobs: QUERY_VALUES.listJobs.state }),
    component: lazyPage(() => import('../pages/jobs/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/prices',
    validateSearch: searchParams(['open', 'new', 'reprice', 'catalog', 'model'], QUERY_VALUES.listPrices),
    component: lazyPage(() => import('../pages/prices/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/access',
    validateSearch: searchParams(['new'], {}),
    component: lazyPage(() => import('../pages/access/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/people',
    validateSearch: searchParams(['q', 'open'], {}),
    component: lazyPage(() => import('../pages/people/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/trusts',
    validateSearch: searchParams(['open', 'new'], {}),
    component: lazyPage(() => import('../pages/trusts/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/policies',
    validateSearch: searchParams(['open', 'new'], {}),
    component: lazyPage(() => import('../pages/policies/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/webhooks',
    validateSearch: searchParams(['open', 'new'], {}),
    component: lazyPage(() => import('../pages/webhooks/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/sinks',
    validateSearch: searchParams(['open', 'new'], {}),
    component: lazyPage(() => import('../pages/sinks/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/audit',
    validateSearch: searchParams(['actor', 'subject_name', 'subject_id'], QUERY_VALUES.listAudit),
    component: lazyPage(() => import('../pages/audit/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/system',
    component: lazyPage(() => import('../pages/system/page')),
  }),
  createRoute({ ...signedInPage, path: '$', component: NotFound }),
] as const;

/** For holders of a gateway key, who have no session. */
const keyPage = createRoute({
  getParentRoute: () => root,
  path: '/key',
  component: lazyPage(() => import('../pages/key/page')),
});

/** For everybody who got an error. */
const errorsPage = createRoute({
  getParentRoute: () => root,
  path: '/errors',
  component: lazyPage(() => import('../pages/errors/page')),
});

const routeTree = root.addChildren([signedIn.addChildren(signedInPages), keyPage, errorsPage]);

export const router = createRouter({
  routeTree,
  basepath: '/console',
  parseSearch,
  stringifySearch,
  defaultPreload: 'intent',
  defaultPendingComponent: Pending,
  defaultErrorComponent: ({ error, reset }) => <PageError error={error} reset={reset} />,
});

/** In place of a page that is being loaded. */
function Pending(): ReactNode {
  const path = useLocation({ select: ({ pathname }) => pathname });
  return (
    <>
      <PageHeader title={PAGES.find(({ to }) => to === path)?.label ?? 'Loading …'} />
      <LoadingRows rows={8} />
    </>
  );
}

/** In place of a page that could not be shown. */
function PageError({ error, reset }: { error: unknown; reset: () => void }): ReactNode {
  const client = useQueryClient();
  const isMissing = error instanceof ApiError && error.code === 'not_loaded';
  const again = async () => {
    // Without a gateway the browser would show its own error page, and the console would be gone.
    if (isMissing && (await client.fetchQuery({ ...sessionQuery, staleTime: 0 }).catch(() => null)) !== null)
      window.location.reload();
    else reset();
  };
  return (
    <>
      <PageHeader title="This page could not be shown" />
      <ErrorAlert error={error} retry={() => void again()} />
    </>
  );
}

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
