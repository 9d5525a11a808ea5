import { type IssuedToken, readToken, type TokenEndpoint } from './token-endpoint.js';

export interface OauthClient {
  readonly tokenUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Null: the endpoint's own default. */
  readonly scope: string | null;
}

/**
 * Requests a token with the client credentials grant (RFC 6749 4.4). The client is named in the form and not by HTTP Basic:
 * endpoints disagree on how the user name and password of Basic are encoded.
 *
 * @throws TokenError
 */
export async function requestClientToken(client: OauthClient, endpoint: TokenEndpoint): Promise<IssuedToken> {
  const { tokenUrl, clientId, clientSecret, scope } = client;
  const form = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: clientId,
    client_secret: clientSecret,
    ...(scope !== null && { scope }),
  });
  return readToken(await endpoint.post(tokenUrl, form), [clientSecret]);
}
