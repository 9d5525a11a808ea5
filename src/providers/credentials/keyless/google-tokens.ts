import { type IssuedToken, lifeUntil, readObject, readToken, usable } from '../token-endpoint.js';
import { TOKEN_ORIGINS } from './cloud-hosts.js';
import { type Exchange, mustBeAt } from './exchange.js';
import { INSTANCE_METADATA } from './metadata-services.js';

/** For the call to IAM, which decides what the service account may do. */
const CLOUD_PLATFORM = 'https://www.googleapis.com/auth/cloud-platform';

/** Requests an access token from where the setting `source` says. @throws TokenError */
export function requestGoogleToken(exchange: Exchange): Promise<IssuedToken> {
  return exchange.settings.source === 'metadata' ? ofMetadata(exchange) : federated(exchange);
}

/**
 * Exchanges the identity token at the Security Token Service (Google Cloud, "Method: v1.token", RFC 8693). With a service
 * account, its result is exchanged for a token of that account (IAM Service Account Credentials API, generateAccessToken).
 */
async function federated(exchange: Exchange): Promise<IssuedToken> {
  mustBeAt('google', exchange);
  const { identity_token, audience, service_account: account, scope } = exchange.settings;
  const { token, origin } = await exchange.identities.read(identity_token!, TOKEN_ORIGINS.google);
  const form = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    audience: audience!,
    scope: account === undefined ? scope! : CLOUD_PLATFORM,
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    subject_token: token,
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
  });
  const federation = readToken(await exchange.endpoint.post(`${origin}/v1/token`, form), [token]);
  if (account === undefined) return federation;
  const iam = origin.replace('://sts', '://iamcredentials');
  const response = await exchange.endpoint.post(
    `${iam}/v1/projects/-/serviceAccounts/${encodeURIComponent(account)}:generateAccessToken`,
    { scope: scope!.split(' '), lifetime: '3600s' },
    { authorization: `Bearer ${federation.value}` },
  );
  const body = readObject(response, [token, federation.value]);
  return { value: usable(body.accessToken, 'accessToken'), lifeMs: lifeUntil(body.expireTime, response) };
}

/** The service account of the machine or pod (Google Cloud, "About VM metadata"). */
async function ofMetadata(exchange: Exchange): Promise<IssuedToken> {
  mustBeAt('google', exchange);
  const { service_account: account = 'default', scope } = exchange.settings;
  const path = `/computeMetadata/v1/instance/service-accounts/${encodeURIComponent(account)}/token`;
  const query = scope === undefined ? '' : `?scopes=${encodeURIComponent(scope.split(' ').join(','))}`;
  const url = INSTANCE_METADATA + path + query;
  return readToken(await exchange.endpoint.metadata('google', url, { 'metadata-flavor': 'Google' }), []);
}
