import type { AccessTokens } from './credentials/access-tokens.js';
import { isCloudAuth, type ProviderAuth } from './credentials/auth-kinds.js';
import type { CredentialSource } from './credentials/credential-sources.service.js';
import type { RequestSigner } from './credentials/request-signer.js';
import type { OnDisconnect } from './on-disconnect.js';
import { type OwnEndpoints, ownEndpoints } from './inference-endpoints.js';

/**
 * Where calls go.
 *
 * @beta
 */
export interface Provider {
  readonly name: string;
  /** Scheme, host and port: one connection pool each. */
  readonly origin: string;
  /** Path of the provider's URL without a trailing slash; often empty. */
  readonly basePath: string;
  /**
   * The header that carries its secret; null if it takes none, or for `signer` and `tokens`.
   *
   * @internal
   */
  readonly credential: { readonly name: string; readonly value: string } | null;
  /**
   * What is sent and must not come back to a client.
   *
   * @internal
   */
  readonly secret: string | null;
  /** The caller's own credential is forwarded as it is. */
  readonly forwardsCredentials: boolean;
  /**
   * Signs each request instead.
   *
   * @internal
   */
  readonly signer: RequestSigner | null;
  /**
   * Has the access token that is sent instead; see withAccessToken().
   *
   * @internal
   */
  readonly tokens: AccessTokens | null;
  /**
   * Differs for another provider of the same name and after each change: the secret may be that of another account.
   *
   * @internal
   */
  readonly revision: string;
  /** For keys that do not say it themselves. */
  readonly onDisconnect: OnDisconnect;
  /**
   * Its inference endpoints besides the common ones.
   *
   * @internal
   */
  readonly endpoints: OwnEndpoints;
}

/**
 * @param url normalised provider URL, without a trailing slash
 * @param source of its credential; null if the secret is sent as it is
 */
export function makeProvider(
  name: string,
  url: string,
  auth: ProviderAuth,
  secret: string | null,
  source: CredentialSource | null = null,
  revision = '',
  onDisconnect: OnDisconnect = 'cancel',
): Provider {
  const { origin, hostname, pathname } = new URL(url);
  const basePath = pathname === '/' ? '' : pathname;
  return {
    name,
    origin,
    basePath,
    credential:
      secret === null || auth === 'client' || isCloudAuth(auth)
        ? null
        : auth === 'bearer'
          ? { name: 'Authorization', value: `Bearer ${secret}` }
          : { name: auth, value: secret },
    secret: source === null ? secret : source.sent,
    signer: source?.signer ?? null,
    tokens: source?.tokens ?? null,
    forwardsCredentials: auth === 'client',
    revision,
    onDisconnect,
    endpoints: ownEndpoints(hostname, basePath),
  };
}

/**
 * The provider with an access token as its credential, for one call.
 *
 * @throws GatewayError provider_credential_unavailable
 */
export async function withAccessToken(provider: Provider, tokens: AccessTokens): Promise<Provider> {
  const token = await tokens.get();
  return { ...provider, credential: { name: 'Authorization', value: `Bearer ${token}` }, secret: token };
}
