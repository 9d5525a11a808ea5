import type { EndpointRule } from '../keys/gateway-key.entity.js';

const INFERENCE_POSTS = new Set([
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
/** Gemini names model and method in one segment: `gemini-2.0-flash:generateContent`. */
const GEMINI_POST = /^\/v1beta\/models\/[^/]+$/;

/** Headers with which some servers let a POST act as another method; CGI-like ones read `_` for `-`. */
const METHOD_OVERRIDES = new Set(['x-http-method-override', 'x-http-method', 'x-method-override']);

/**
 * May a key with this rule send this request? All teams share one provider secret, so files, batches, assistants and
 * the like would show one team another team's objects: they take `all`.
 *
 * @param endpoint raw path after `/p/<provider>`, without the query, compared byte for byte
 * @param rawHeaders flat raw headers
 */
export function allowsEndpoint(
  rule: EndpointRule,
  method: string,
  endpoint: string,
  rawHeaders: readonly string[],
): boolean {
  if (rule === 'all') return true;
  if (method === 'POST') {
    if (!INFERENCE_POSTS.has(endpoint) && !GEMINI_POST.test(endpoint)) return false;
  } else if (method === 'GET') {
    if (endpoint !== '/v1/models' && !(endpoint.startsWith('/v1/models/') && endpoint.length > 11))
      return false;
  } else {
    return false;
  }
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    // Few names begin with this letter, and this is looked at for each header of each call.
    if (name[0] !== 'x' && name[0] !== 'X') continue;
    if (METHOD_OVERRIDES.has(name.toLowerCase().replaceAll('_', '-'))) return false;
  }
  return true;
}
