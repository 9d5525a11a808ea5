import { type IssuedToken, readToken } from '../token-endpoint.js';
import { PROVIDER_ORIGINS } from './cloud-hosts.js';
import { type Exchange, mustBeAt } from './exchange.js';

/** Anthropic's SDKs send it with every request that has an OAuth token, and with the exchange. */
export const OAUTH_BETA = 'oauth-2025-04-20';
/** With it the token endpoint accepts the grant of RFC 7523. */
const FEDERATION_BETA = 'oidc-federation-2026-04-01';

/** @throws TokenError @see Claude API documentation, "WIF reference" (a profile of RFC 7523) */
export async function exchangeAtAnthropic(exchange: Exchange): Promise<IssuedToken> {
  mustBeAt('anthropic', exchange);
  const { identity_token, federation_rule_id, organization_id, service_account_id, workspace_id } =
    exchange.settings;
  const { token, origin } = await exchange.identities.read(identity_token!, PROVIDER_ORIGINS.anthropic);
  const response = await exchange.endpoint.post(
    `${origin}/v1/oauth/token`,
    {
      grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
      assertion: token,
      federation_rule_id,
      organization_id,
      service_account_id,
      ...(workspace_id !== undefined && { workspace_id }),
    },
    { 'anthropic-beta': `${OAUTH_BETA},${FEDERATION_BETA}` },
  );
  return readToken(response, [token]);
}
