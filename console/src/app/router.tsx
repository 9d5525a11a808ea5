import { Anchor, Button, Center } from '@mantine/core';
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Link,
  Outlet,
} from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import { EmptyState } from '../display/empty-state';
import { ErrorAlert } from '../display/error-alert';
import { LoadingRows } from '../display/loading';
import { PageHeader } from '../display/page-header';
import { parseSearch, stringifySearch, type UrlState } from '../url/url-state';
import { Layout } from './layout';
import { useSession } from './session';

/** Not loaded by those who are signed in already. */
const SignIn = lazy(async () => ({ default: (await import('./sign-in')).SignIn }));

const root = createRootRoute({
  validateSearch: (search): UrlState => search as UrlState,
  component: Outlet,
  notFoundComponent: () => (
    <main>
      <PageHeader title="Page not found" />
      <EmptyState
        title="There is no page at this address"
        action={
          <Anchor component={Link} to="/">
            Go to the overview
          </Anchor>
        }
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

const signedInPage = { getParentRoute: () => signedIn };

const routeTree = root.addChildren([
  signedIn.addChildren([
    createRoute({
      ...signedInPage,
      path: '/',
      component: lazyRouteComponent(() => import('../pages/overview/page')),
    }),
    createRoute({
      ...signedInPage,
      path: '/usage',
      component: lazyRouteComponent(() => import('../pages/usage/page')),
    }),
    createRoute({
      ...signedInPage,
      path: '/requests',
      component: lazyRouteComponent(() => import('../pages/requests/page')),
    }),
    createRoute({
      ...signedInPage,
      path: '/keys',
      component: lazyRouteComponent(() => import('../pages/keys/page')),
    }),
    createRoute({
      ...signedInPage,
      path: '/teams',
      component: lazyRouteComponent(() => import('../pages/teams/page')),
    }),
    createRoute({
      ...signedInPage,
      path: '/limits',
      component: lazyRouteComponent(() => import('../pages/limits/page')),
    }),
    createRoute({
      ...signedInPage,
      path: '/providers',
      component: lazyRouteComponent(() => import('../pages/providers/page')),
    }),
    createRoute({
      ...signedInPage,
      path: '/prices',
      component: lazyRouteComponent(() => import('../pages/prices/page')),
    }),
    createRoute({
      ...signedInPage,
      path: '/audit',
      component: lazyRouteComponent(() => import('../pages/audit/page')),
    }),
    createRoute({
      ...signedInPage,
      path: '/system',
      component: lazyRouteComponent(() => import('../pages/system/page')),
    }),
  ]),
  // For holders of a gateway key, who have no session.
  createRoute({
    getParentRoute: () => root,
    path: '/key',
    component: lazyRouteComponent(() => import('../pages/key/page')),
  }),
]);

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
