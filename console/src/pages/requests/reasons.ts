import type { Call } from './call';

/** What the gateway's own codes mean, for those that a row can have. As docs/reference/errors.md has them. */
const CODES: Readonly<Record<string, string>> = {
  upstream_unreachable: 'The gateway could not connect to the provider.',
  upstream_invalid_response: 'The provider broke off, or sent something that is not valid HTTP.',
  upstream_timeout: 'The provider did not respond in time.',
  provider_credential_unavailable:
    'The provider needs an access token, and its token endpoint issued none. Test the provider on the page Providers.',
  request_timeout: 'The client stopped sending or reading.',
  request_too_large: 'The request body is larger than MAX_BODY_BYTES.',
  shutting_down: 'The gateway was stopping.',
  insufficient_quota: 'A budget was spent.',
  invalid_api_key: 'The key was revoked, disabled or expired during the call.',
};

const REFUSED = 'Nothing listens at its address and port, or a firewall rejects the connection.';
const UNKNOWN_NAME =
  'Its host name has no address. Check the URL of the provider, and DNS where the gateway runs.';
const NO_ANSWER = 'It did not answer at its address. A firewall may drop the connection.';
const UNTRUSTED =
  'Its certificate is not from an authority that Node.js trusts. For a private one, set NODE_EXTRA_CA_CERTS.';
const BROKEN_OFF = 'The connection broke off.';

/** What the causes mean: codes of the system, of TLS and of the HTTP client. */
const CAUSES: Readonly<Record<string, string>> = {
  ECONNREFUSED: REFUSED,
  ENOTFOUND: UNKNOWN_NAME,
  EAI_AGAIN: 'DNS did not answer where the gateway runs, so the host name has no address now.',
  ETIMEDOUT: NO_ANSWER,
  UND_ERR_CONNECT_TIMEOUT: NO_ANSWER,
  EHOSTUNREACH: 'There is no route to its address.',
  ENETUNREACH: 'There is no route to its address.',
  ECONNRESET: BROKEN_OFF,
  EPIPE: BROKEN_OFF,
  UND_ERR_SOCKET: BROKEN_OFF,
  UND_ERR_HEADERS_TIMEOUT: 'It took longer than UPSTREAM_HEADERS_TIMEOUT_MS to begin to respond.',
  UND_ERR_BODY_TIMEOUT:
    'It sent nothing for longer than UPSTREAM_IDLE_TIMEOUT_MS in the middle of the response.',
  CERT_HAS_EXPIRED: 'Its certificate has expired.',
  ERR_TLS_CERT_ALTNAME_INVALID: 'Its certificate is for another host name.',
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  EGRESS_PROXY: 'The egress proxy (UPSTREAM_PROXY_URL) did not open a connection to it.',
  FORBIDDEN_ADDRESS: 'Its host name resolves to an address that no provider may have.',
};

const TOO_MANY = 'Too many requests or tokens at a time. A retry after a while can succeed.';
const NO_QUOTA = 'The account at the provider has no quota or money left. A retry does not help.';
const BUSY = 'The provider is overloaded. A retry after a while can succeed.';
const SECRET = "The provider rejects the gateway's secret. Replace it on the page Providers.";
const NO_MODEL = 'The provider does not have the model, or its account may not use it.';
const FILTERED = "The provider's content filter rejected the request or the response.";

/** What well-known types and codes of providers mean. */
const PROVIDER: Readonly<Record<string, string>> = {
  insufficient_quota: NO_QUOTA,
  billing_hard_limit_reached: NO_QUOTA,
  billing_error: NO_QUOTA,
  rate_limit_exceeded: TOO_MANY,
  rate_limit_error: TOO_MANY,
  RESOURCE_EXHAUSTED: TOO_MANY,
  ThrottlingException: TOO_MANY,
  overloaded_error: BUSY,
  UNAVAILABLE: BUSY,
  ServiceUnavailableException: BUSY,
  invalid_api_key: SECRET,
  authentication_error: SECRET,
  UNAUTHENTICATED: SECRET,
  model_not_found: NO_MODEL,
  DeploymentNotFound: NO_MODEL,
  not_found_error: NO_MODEL,
  context_length_exceeded: 'The request has more tokens than the model can take.',
  content_filter: FILTERED,
  content_policy_violation: FILTERED,
};

/** In the prototype, `constructor` is a word too. */
const wordsOf = (words: Readonly<Record<string, string>>, token: string | null) =>
  token !== null && Object.hasOwn(words, token) ? words[token]! : null;

type Failed = Pick<Call, 'error_code' | 'error_cause' | 'provider_error_type' | 'provider_error_code'>;

export interface Reason {
  /** Who reported it, and the token. */
  token: string;
  /** What it means; null if it is not known. */
  words: string | null;
}

/** Why a call failed, as far as the row says: of the gateway, the connection and the provider. */
export function reasonsOf(call: Failed): Reason[] {
  const { error_code: code, error_cause: cause } = call;
  const { provider_error_type: type, provider_error_code: providerCode } = call;
  const reasons: Reason[] = [];
  if (code !== null) reasons.push({ token: code, words: wordsOf(CODES, code) });
  if (cause !== null) reasons.push({ token: cause, words: wordsOf(CAUSES, cause) });
  // The code is the narrower of the two.
  const token = [type, providerCode === type ? null : providerCode]
    .filter((part) => part !== null)
    .join(' · ');
  if (token !== '')
    reasons.push({ token, words: wordsOf(PROVIDER, providerCode) ?? wordsOf(PROVIDER, type) });
  return reasons;
}

/** The one token that says most: of the provider, else of the connection, else of the gateway. */
export function shortReason(call: Failed): string | null {
  return call.provider_error_code ?? call.provider_error_type ?? call.error_cause ?? call.error_code;
}
