import { type OwnEndpoints, ownEndpoints } from './inference-endpoints.js';

/**
 * How a provider's secret is sent: the name of the header, or a Bearer token in `Authorization`. `client`: there is none,
 * and the caller's own credential is forwarded.
 */
export const PROVIDER_AUTHS = ['bearer', 'x-api-key', 'api-key', 'x-goog-api-key', 'client'] as const;
export type ProviderAuth = (typeof PROVIDER_AUTHS)[number];

/** Where calls go and with which secret. */
export interface Provider {
  readonly name: string;
  /** Scheme, host and port: one connection pool each. */
  readonly origin: string;
  /** Path of the provider's URL without a trailing slash; often empty. */
  readonly basePath: string;
  /** The header that carries its secret, or null when it takes none. */
  readonly credential: { readonly name: string; readonly value: string } | null;
  readonly secret: string | null;
  /** The caller's own credential is forwarded as it is. */
  readonly forwardsCredentials: boolean;
  /** Its inference endpoints besides the common ones. */
  readonly endpoints: OwnEndpoints;
}

/** @param url normalised provider URL, without a trailing slash */
export function makeProvider(name: string, url: string, auth: ProviderAuth, secret: string | null): Provider {
  const { origin, hostname, pathname } = new URL(url);
  const basePath = pathname === '/' ? '' : pathname;
  return {
    name,
    origin,
    basePath,
    credential:
      secret === null || auth === 'client'
        ? null
        : auth === 'bearer'
          ? { name: 'Authorization', value: `Bearer ${secret}` }
          : { name: auth, value: secret },
    secret,
    forwardsCredentials: auth === 'client',
    endpoints: ownEndpoints(hostname, basePath),
  };
}
