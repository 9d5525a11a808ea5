import type { DiscoveryService } from '@nestjs/core';

/** A provider in Nest's container. */
type Found = ReturnType<DiscoveryService['getProviders']>[number];

/**
 * What Nest has made of a provider that must take part in every call.
 *
 * @throws Error if Nest makes it for a request or for whoever injects it only: then it may never exist
 */
export function madeAtStart(provider: Found): unknown {
  if (provider.isDependencyTreeStatic() && !provider.isTransient) return provider.instance;
  throw new Error(
    `${String(provider.name)} is in request or transient scope, or depends on what is in request scope, so that Nest does ` +
      'not make it at the start and calls would pass it by: give it the default scope, and read what belongs to one call ' +
      'from the call',
  );
}
