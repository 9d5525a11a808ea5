import { type IssuedToken, readToken, TokenError } from '../token-endpoint.js';
import { TOKEN_ORIGINS } from './cloud-hosts.js';
import { type Exchange, mustBeAt } from './exchange.js';
import { INSTANCE_METADATA } from './metadata-services.js';

const DEFAULT_SCOPE = '/.default';

/** Requests an access token of Microsoft Entra ID from where the setting `source` says. @throws TokenError */
export function requestEntraToken(exchange: Exchange): Promise<IssuedToken> {
  return exchange.settings.source === 'metadata' ? ofManagedIdentity(exchange) : withAssertion(exchange);
}

/**
 * Client credentials with the identity token as the client's assertion (RFC 7523 2.2; Microsoft identity platform, "OAuth
 * 2.0 client credentials flow", third case).
 */
async function withAssertion(exchange: Exchange): Promise<IssuedToken> {
  mustBeAt('azure', exchange);
  const { identity_token, token_url, client_id, scope } = exchange.settings;
  const { token, origin } = await exchange.identities.read(identity_token!, TOKEN_ORIGINS.entra);
  if (new URL(token_url!).origin !== origin) {
    throw new TokenError(
      `IDENTITY_TOKEN_FILES allows sending the identity token "${identity_token}" to ${origin} only, and token_url is elsewhere`,
    );
  }
  const form = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: client_id!,
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: token,
    scope: scope!,
  });
  return readToken(await exchange.endpoint.post(token_url!, form), [token]);
}

/** A managed identity of the virtual machine (Microsoft Entra, "Use managed identities on a virtual machine"). */
async function ofManagedIdentity(exchange: Exchange): Promise<IssuedToken> {
  mustBeAt('azure', exchange);
  const { client_id, scope } = exchange.settings;
  // It takes the resource, which a scope names with a suffix.
  const resource = scope!.endsWith(DEFAULT_SCOPE) ? scope!.slice(0, -DEFAULT_SCOPE.length) : scope!;
  const query = new URLSearchParams({
    'api-version': '2018-02-01',
    resource,
    ...(client_id !== undefined && { client_id }),
  });
  const url = `${INSTANCE_METADATA}/metadata/identity/oauth2/token?${query.toString()}`;
  return readToken(await exchange.endpoint.metadata('azure', url, { metadata: 'true' }), []);
}
