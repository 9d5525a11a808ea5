import { RequestMethod, type Type } from '@nestjs/common';
import { type DiscoveryService, MetadataScanner, type ModulesContainer } from '@nestjs/core';
import { PUBLIC_ROUTE } from '../platform/public-route.js';

/** What Nest keeps of controllers, handlers and modules. */
const GUARDS = '__guards__';
const PATH = 'path';
const METHOD = 'method';
const MODULE_PATH = '__module_path__';

/** A route that anybody may call. */
export interface UnguardedRoute {
  /** As in `GET /widgets`. */
  readonly name: string;
  /** True below `/admin`, where everybody expects a token to be asked for. */
  readonly isAdmin: boolean;
}

const ADMIN = /^\/admin(\/|$)/i;

/** The routes without a guard of their own that are not `@PublicRoute()`, in the order of the controllers. */
export function unguardedRoutes(discovery: DiscoveryService, modules: ModulesContainer): UnguardedRoute[] {
  return discovery.getControllers().flatMap(({ metatype, host }) => {
    const controller = metatype as Type;
    if (isCovered(controller)) return [];
    // That of RouterModule.
    const prefix = of<string>(MODULE_PATH + modules.applicationId, host!.metatype) ?? '';
    const prototype = controller.prototype as Record<string, object>;
    return new MetadataScanner().getAllMethodNames(prototype).flatMap((method) => {
      const handler = prototype[method]!;
      const path = of<string | string[]>(PATH, handler);
      if (path === undefined || isCovered(handler)) return [];
      const verb = RequestMethod[of<RequestMethod>(METHOD, handler) ?? RequestMethod.GET];
      return [of<string | string[]>(PATH, controller) ?? ''].flat().flatMap((base) =>
        [path].flat().map((end) => {
          const segments = [prefix, base, end].flatMap((part) => part.split('/'));
          const full = `/${segments.filter((segment) => segment !== '').join('/')}`;
          return { name: `${verb} ${full}`, isAdmin: ADMIN.test(full) };
        }),
      );
    });
  });
}

function isCovered(target: object): boolean {
  return (of<unknown[]>(GUARDS, target) ?? []).length > 0 || of<boolean>(PUBLIC_ROUTE, target) === true;
}

function of<T>(name: string, target: object): T | undefined {
  return Reflect.getMetadata(name, target) as T | undefined;
}
