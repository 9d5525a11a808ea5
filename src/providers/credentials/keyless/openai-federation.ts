import { type IssuedToken, readToken } from '../token-endpoint.js';
import { TOKEN_ORIGINS } from './cloud-hosts.js';
import { type Exchange, mustBeAt } from './exchange.js';

/** @throws TokenError @see OpenAI API reference, "Workload identity token exchange" (a profile of RFC 8693) */
export async function exchangeAtOpenAi(exchange: Exchange): Promise<IssuedToken> {
  mustBeAt('openai', exchange);
  const { identity_token, identity_provider_id, service_account_id } = exchange.settings;
  const { token, origin } = await exchange.identities.read(identity_token!, TOKEN_ORIGINS.openai);
  const response = await exchange.endpoint.post(`${origin}/oauth/token`, {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    subject_token: token,
    identity_provider_id,
    service_account_id,
  });
  return readToken(response, [token]);
}
