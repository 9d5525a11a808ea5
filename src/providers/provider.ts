import type { AccessTokens } from './credentials/access-tokens.js';
import { firstHeader } from '../platform/raw-headers.js';
import { isCloudAuth, type ProviderAuth } from './credentials/auth-kinds.js';
import type { CredentialSource, SentCredential } from './credentials/credential-sources.service.js';
import type { RequestSigner } from './credentials/request-signer.js';
import type { OnDisconnect } from './on-disconnect.js';
import { type OwnEndpoints, ownEndpoints } from './inference-endpoints.js';

/** Where calls go. */
export interface Provider {
  readonly name: string;
  /** ID of the only team that may use it; null: all teams. */
  readonly teamId: string | null;
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
   * Signs each request instead; see `signs`.
   *
   * @internal
   */
  readonly signer: RequestSigner | null;
  /**
   * Each request is signed, so its body is gathered. `signer` is null until withAccessToken() if its keys expire.
   *
   * @internal
   */
  readonly signs: boolean;
  /**
   * Has the access token, or another credential that expires, that is sent instead; see withAccessToken().
   *
   * @internal
   */
  readonly tokens: AccessTokens<SentCredential> | null;
  /**
   * The one of `tokens` that this call is sent with.
   *
   * @internal
   */
  readonly inUse: SentCredential | null;
  /**
   * A value that `anthropic-beta` must have.
   *
   * @internal
   */
  readonly beta: string | null;
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
 * @param teamId of the only team that may use it
 */
export function makeProvider(
  name: string,
  url: string,
  auth: ProviderAuth,
  secret: string | null,
  source: CredentialSource | null = null,
  revision = '',
  onDisconnect: OnDisconnect = 'cancel',
  teamId: string | null = null,
): Provider {
  const { origin, hostname, pathname } = new URL(url);
  const basePath = pathname === '/' ? '' : pathname;
  return {
    name,
    teamId,
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
    signs: source?.signs ?? false,
    tokens: source?.tokens ?? null,
    inUse: null,
    beta: source?.beta ?? null,
    forwardsCredentials: auth === 'client',
    revision,
    onDisconnect,
    endpoints: ownEndpoints(hostname, basePath),
  };
}

/**
 * The provider with the credential that it has at present, for one call.
 *
 * @throws GatewayError provider_credential_unavailable
 */
export async function withAccessToken(
  provider: Provider,
  tokens: AccessTokens<SentCredential>,
): Promise<Provider> {
  const inUse = await tokens.get();
  return { ...provider, ...inUse, inUse };
}

/**
 * Errors of AWS for keys that have expired or are no longer known, as the header `x-amzn-errortype` names them (Smithy, "AWS
 * JSON protocols"): a namespace may come before, a URL after.
 */
const DEAD_KEYS = /^(?:[^#]*#)?(?:ExpiredToken(?:Exception)?|UnrecognizedClientException)(?::|$)/;

/**
 * Drops the credential of a call if the response says that it has expired or was revoked: the next call gets a new one.
 *
 * @param headers flat raw headers of the response
 *
 * @internal
 */
export function noteRejection({ tokens, inUse }: Provider, status: number, headers: readonly string[]): void {
  if (tokens === null || inUse === null) return;
  if (status === 401 || DEAD_KEYS.test(firstHeader(headers, 'x-amzn-errortype') ?? ''))
    tokens.rejected(inUse);
}
