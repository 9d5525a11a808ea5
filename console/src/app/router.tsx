import { Button, Center } from '@mantine/core';
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
} from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import { QUERY_VALUES } from '../api/query-values';
import { EmptyState } from '../display/empty-state';
import { ErrorAlert } from '../display/error-alert';
import { PageLink } from '../display/links';
import { LoadingRows } from '../display/loading';
import { PageHeader } from '../display/page-header';
import { searchParams } from '../url/search';
import { parseSearch, stringifySearch } from '../url/url-state';
import { Layout } from './layout';
import { useSession } from './session';

/** Not loaded by those who are signed in already. */
const SignIn = lazy(async () => ({ default: (await import('./sign-in')).SignIn }));

const root = createRootRoute({
  // The time range and zone, which links from page to page take along.
  validateSearch: searchParams(['range', 'from', 'to', 'tz'], {}),
  component: Outlet,
  notFoundComponent: () => (
    <main>
      <PageHeader title="Page not found" />
      <EmptyState
        title="There is no page at this address"
        action={<PageLink to="/">Go to the overview</PageLink>}
      />
    </main>
  ),
});

/** What only somebody who is signed in sees. */
const signedIn = createRoute({ getParentRoute: () => root, id: 'signed-in', component: SignedIn });

function SignedIn() {
  const { data, error, refetch } = useSession();
  if (data === undefined) {
    return (
      <Center mih="100vh" p="md" component="main">
        <div style={{ width: 420 }}>
          {error === null ? (
            <LoadingRows rows={3} />
          ) : (
            <ErrorAlert error={error} retry={() => void refetch()} />
          )}
        </div>
      </Center>
    );
  }
  if (data.session !== null) return <Layout session={data.session} />;
  return (
    <Suspense fallback={null}>
      <SignIn />
    </Suspense>
  );
}

/** Filters of calls. */
const CALL_TEXTS = [
  'team',
  'key',
  'provider',
  'model',
  'status',
  'provider_error',
  'end_user',
  'session',
] as const;
const CALL_CHOICES = { outcome: QUERY_VALUES.listRequests.outcome };

const signedInPage = { getParentRoute: () => signedIn };

// In arrays of their own: as arguments of addChildren() routes would lose the types of their search.
const signedInPages = [
  createRoute({
    ...signedInPage,
    path: '/',
    validateSearch: searchParams(['metric', 'by'], {}),
    component: lazyRouteComponent(() => import('../pages/overview/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/usage',
    validateSearch: searchParams(['metric', 'by', 'then', ...CALL_TEXTS], CALL_CHOICES),
    component: lazyRouteComponent(() => import('../pages/usage/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/requests',
    validateSearch: searchParams(['id', 'columns', 'live', 'rejected', 'min_duration_ms', ...CALL_TEXTS], CALL_CHOICES),
    component: lazyRouteComponent(() => import('../pages/requests/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/keys',
    validateSearch: searchParams(
      ['q', 'team', 'cost_center', 'expires_before', 'unused_since', 'key', 'new', 'find'],
      QUERY_VALUES.listKeys,
    ),
    component: lazyRouteComponent(() => import('../pages/keys/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/teams',
    validateSearch: searchParams(['open', 'new'], {}),
    component: lazyRouteComponent(() => import('../pages/teams/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/limits',
    validateSearch: searchParams(['team', 'key', 'rejected'], QUERY_VALUES.listLimits),
    component: lazyRouteComponent(() => import('../pages/limits/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/providers',
    validateSearch: searchParams(['open', 'new'], {}),
    component: lazyRouteComponent(() => import('../pages/providers/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/prices',
    validateSearch: searchParams(['open', 'new', 'reprice', 'catalog', 'model'], QUERY_VALUES.listPrices),
    component: lazyRouteComponent(() => import('../pages/prices/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/access',
    validateSearch: searchParams(['new'], {}),
    component: lazyRouteComponent(() => import('../pages/access/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/webhooks',
    validateSearch: searchParams(['open', 'new'], {}),
    component: lazyRouteComponent(() => import('../pages/webhooks/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/sinks',
    validateSearch: searchParams(['open', 'new'], {}),
    component: lazyRouteComponent(() => import('../pages/sinks/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/audit',
    validateSearch: searchParams(['actor', 'subject_name'], QUERY_VALUES.listAudit),
    component: lazyRouteComponent(() => import('../pages/audit/page')),
  }),
  createRoute({
    ...signedInPage,
    path: '/system',
    component: lazyRouteComponent(() => import('../pages/system/page')),
  }),
] as const;

/** For holders of a gateway key, who have no session. */
const keyPage = createRoute({
  getParentRoute: () => root,
  path: '/key',
  component: lazyRouteComponent(() => import('../pages/key/page')),
});

const routeTree = root.addChildren([signedIn.addChildren(signedInPages), keyPage]);

export const router = createRouter({
  routeTree,
  basepath: '/console',
  parseSearch,
  stringifySearch,
  defaultPreload: 'intent',
  defaultPendingComponent: () => <LoadingRows rows={8} />,
  defaultErrorComponent: ({ error, reset }) => (
    <>
      <ErrorAlert error={error} />
      <Button mt="sm" variant="default" onClick={reset}>
        Show the page again
      </Button>
    </>
  ),
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
