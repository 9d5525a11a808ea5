/** Ways of authentication with settings besides the secret. */
const CLOUD_AUTHS = ['aws-sigv4', 'google', 'oauth2'] as const;
export type CloudAuth = (typeof CLOUD_AUTHS)[number];

export function isCloudAuth(auth: string): auth is CloudAuth {
  return (CLOUD_AUTHS as readonly string[]).includes(auth);
}

/** What else than the secret a way of authentication needs. Nothing here is secret. */
export interface AuthSettings {
  region?: string;
  service?: string;
  access_key_id?: string;
  client_email?: string;
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
