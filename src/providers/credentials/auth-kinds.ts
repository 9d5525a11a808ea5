/** Ways of authentication with settings besides the secret. */
const CLOUD_AUTHS = ['aws-sigv4', 'google', 'oauth2', 'openai-federation', 'anthropic-federation'] as const;
export type CloudAuth = (typeof CLOUD_AUTHS)[number];

export function isCloudAuth(auth: string): auth is CloudAuth {
  return (CLOUD_AUTHS as readonly string[]).includes(auth);
}

/** Where `aws-sigv4` has its credentials from, if not from a stored access key. */
export const AWS_CREDENTIALS = ['web-identity', 'container', 'instance'] as const;
/** Where `google` and `oauth2` have their tokens from, if not by a stored secret. */
export const TOKEN_SOURCES = ['federation', 'metadata'] as const;

/** What else than the secret a way of authentication needs. Nothing here is secret. */
export interface AuthSettings {
  region?: string;
  service?: string;
  access_key_id?: string;
  credentials?: (typeof AWS_CREDENTIALS)[number];
  role_arn?: string;
  source?: (typeof TOKEN_SOURCES)[number];
  identity_token?: string;
  audience?: string;
  service_account?: string;
  client_email?: string;
  identity_provider_id?: string;
  federation_rule_id?: string;
  organization_id?: string;
  service_account_id?: string;
  workspace_id?: string;
  token_url?: string;
  client_id?: string;
  scope?: string;
}

/**
 * How a provider's secret is used: sent in the header of this name, sent as a Bearer token in `Authorization`, or used to
 * sign each request or to request an access token. `client`: there is none, and the caller's own credential is forwarded.
 */
export const PROVIDER_AUTHS = [
  'bearer',
  'x-api-key',
  'api-key',
  'x-goog-api-key',
  'client',
  ...CLOUD_AUTHS,
] as const;
export type ProviderAuth = (typeof PROVIDER_AUTHS)[number];

/** True if the identity of the workload takes the place of a stored secret. */
export function isKeyless(auth: string, settings: AuthSettings | null | undefined): boolean {
  if (auth === 'openai-federation' || auth === 'anthropic-federation') return true;
  if (auth === 'aws-sigv4') return settings?.credentials !== undefined;
  return (auth === 'google' || auth === 'oauth2') && settings?.source !== undefined;
}
