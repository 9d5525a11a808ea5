import type { TestGateway } from '../support/gateway.js';

export interface Route {
  /** In capitals; `ALL` for a route that takes every method. */
  method: string;
  /** As registered, with `:names` and `*wildcards`. */
  path: string;
}

interface Layer {
  route?: { path: string; methods: Record<string, boolean> };
}

/** Every route of a running gateway, read from its router: one that somebody adds cannot be forgotten. */
export function routesOf({ gateway }: TestGateway): Route[] {
  const express = gateway.app.getHttpAdapter().getInstance();
  const { stack } = express.router as unknown as { stack: Layer[] };
  const routes = stack.flatMap(({ route }) => {
    if (route === undefined) return [];
    const methods = route.methods._all ? ['all'] : Object.keys(route.methods);
    return methods.map((method) => ({ method: method.toUpperCase(), path: route.path }));
  });
  // Express's app.all() registers a route for each of Node's methods.
  const all = new Map<string, string[]>();
  for (const { method, path } of routes) all.set(path, [...(all.get(path) ?? []), method]);
  return [...all].flatMap(([path, methods]) =>
    methods.length > 10 ? [{ method: 'ALL', path }] : methods.map((method) => ({ method, path })),
  );
}

/** Routes of the admin API that may change something. */
export function changingRoutes(postern: TestGateway): Route[] {
  return routesOf(postern).filter(
    ({ method, path }) => path.startsWith('/admin/v1/') && !['GET', 'HEAD', 'ALL'].includes(method),
  );
}
