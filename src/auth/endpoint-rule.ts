import type { EndpointRule } from '../keys/gateway-key.entity.js';
import { hasParameter } from '../platform/query-parameter.js';

/** Endpoints that take a `model` from the body. */
export const INFERENCE_POSTS: ReadonlySet<string> = new Set([
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/responses',
  '/v1/embeddings',
  '/v1/moderations',
  '/v1/images/generations',
  '/v1/images/edits',
  '/v1/images/variations',
  '/v1/audio/speech',
  '/v1/audio/transcriptions',
  '/v1/audio/translations',
  '/v1/messages',
  '/v1/messages/count_tokens',
  '/v1/rerank',
  '/v1beta/openai/chat/completions',
  '/v1beta/openai/embeddings',
]);
/**
 * Characters of model names, with an encoded `/`, `:` or `@`. A lenient decoder could read other escapes as a dot segment
 * (a dot encoded three times or overlong, a blank after two dots) and so leave the models path.
 */
const MODEL = String.raw`(?:[\w.~:@!$&'()*+,;=-]|%(?:2[Ff]|3[Aa]|40))+`;
/** Gemini names model and method in one segment: `gemini-2.0-flash:generateContent`. */
const GEMINI_POST = new RegExp(`^/v1beta/models/${MODEL}$`);
const MODELS_GET = new RegExp(`^/v1/models(?:/${MODEL})*$`);

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

/**
 * Checks if a key with this rule may send this request. All teams share one provider secret, so files, batches, assistants
 * and similar endpoints would show one team the objects of another: they require `all`.
 *
 * @param endpoint raw path after `/p/<provider>`, without the query, compared byte for byte
 * @param rawHeaders flat raw headers
 * @param query the query string with its `?`; empty if there is none
 */
export function allowsEndpoint(
  rule: EndpointRule,
  method: string,
  endpoint: string,
  rawHeaders: readonly string[],
  query = '',
): boolean {
  if (rule === 'all') return true;
  if (method === 'POST') {
    if (!INFERENCE_POSTS.has(endpoint) && !GEMINI_POST.test(endpoint)) return false;
  } else if (method === 'GET') {
    if (!MODELS_GET.test(endpoint)) return false;
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
