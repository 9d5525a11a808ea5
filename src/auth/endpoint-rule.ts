import type { EndpointRule } from '../keys/gateway-key.entity.js';
import type { Provider } from '../providers/provider.js';
import type { Grant } from './caller.js';
import { hasParameter } from '../platform/query-parameter.js';
import {
  COMMON_POSTS,
  GEMINI_POST,
  MODELS_GET,
  type OwnEndpoints,
} from '../providers/inference-endpoints.js';

/** Headers with which some servers let a request act as another method or on another path. */
const OVERRIDES = [
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
  'x-original-url',
  'x-original-uri',
  'x-override-url',
  'x-rewrite-url',
  'x-rewrite-path',
  'x-envoy-original-path',
];
/** CGI-like servers read `_`, and some any other sign, as `-`. A pattern, because to fold each name would cost more. */
const OVERRIDE = new RegExp(
  `^[^a-z0-9]*(?:${OVERRIDES.join('|').replaceAll('-', '[^a-z0-9]+')})[^a-z0-9]*$`,
  'i',
);
/** Rails, Symfony and Laravel read the same from a parameter. */
const OVERRIDE_PARAMETER = '_method';

/** What `endpoints: own` is at each provider: `all` at those of the team of the key, elsewhere `inference`. */
export function ruleAt(
  { endpoints, teamId }: Pick<Grant, 'endpoints' | 'teamId'>,
  provider: Pick<Provider, 'teamId'>,
): Exclude<EndpointRule, 'own'> {
  if (endpoints !== 'own') return endpoints;
  return provider.teamId === teamId ? 'all' : 'inference';
}

/**
 * Checks if a key with this rule may send this request. Where teams share the secret of a provider, files, batches,
 * assistants and similar endpoints would show one team the objects of another: they require `all`.
 *
 * @param endpoint raw path after `/p/<provider>`, without the query, compared byte for byte
 * @param rawHeaders flat raw headers
 * @param query the query string with its `?`; empty if there is none
 * @param own the inference endpoints of the provider besides the common ones
 */
export function allowsEndpoint(
  rule: Exclude<EndpointRule, 'own'>,
  method: string,
  endpoint: string,
  rawHeaders: readonly string[],
  query: string,
  own: OwnEndpoints,
): boolean {
  if (rule === 'all') return true;
  if (method === 'POST') {
    if (!COMMON_POSTS.has(endpoint) && !GEMINI_POST.test(endpoint) && !own.posts.test(endpoint)) return false;
  } else if (method === 'GET') {
    if (!MODELS_GET.test(endpoint) && !own.gets.test(endpoint)) return false;
  } else {
    return false;
  }
  return !overridesTarget(rawHeaders, query);
}

/**
 * True if a header or parameter lets some servers read another method or path from a request.
 *
 * @param query the query string with its `?`; empty if there is none
 */
export function overridesTarget(rawHeaders: readonly string[], query: string): boolean {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (OVERRIDE.test(rawHeaders[i]!)) return true;
  }
  return query !== '' && hasParameter(query.slice(1), OVERRIDE_PARAMETER);
}
