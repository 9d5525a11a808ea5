import { Logger } from '@nestjs/common';
import type { Provider } from '../../providers/provider.js';
import type { ProvidersService } from '../../providers/providers.service.js';
import type { Route } from '../../routes/route.js';

const logger = new Logger('Routes');
const reported = new WeakSet<Route>();

/**
 * Whether a call of a route may be sent to a provider that gets the caller's own credential: only if it is on the host of
 * the first such target, disabled or not. The admin API stores no other route; one from an earlier version, or written to
 * the table, skips its other targets.
 */
export function mayHaveCredential(route: Route, provider: Provider, providers: ProvidersService): boolean {
  const origins = route.targets.map(({ provider: name }) => providers.credentialOrigin(name));
  if (provider.origin === origins.find((origin) => origin !== null)) return true;
  if (!reported.has(route)) {
    reported.add(route);
    logger.warn(
      `Route ${route.name} has targets on different hosts with the auth "client". Only the host of the first one gets the ` +
        `caller's own credential; ${provider.name} is skipped. Remove it from the route.`,
    );
  }
  return false;
}
