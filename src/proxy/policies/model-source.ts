import { isModelName, type NamedModel } from '../../bodies/named-model.js';
import { percentDecode } from '../../platform/query-parameter.js';
import { COMMON_POSTS, PROVIDER_ENDPOINTS } from '../../providers/inference-endpoints.js';

/**
 * Where a request names its model:
 * - `body`: the `model` member or part of the body
 * - `path`: the path; Gemini, Vertex AI, Bedrock, deployments of Azure OpenAI, and a single model of `GET /v1/models`
 * - `query`: the `model` parameter; WebSockets
 * - `list`: nowhere; `GET /v1/models` lists models
 * - `none`: nowhere that could be checked: files, batches, and everything unknown
 */
export type ModelSource = 'body' | 'path' | 'query' | 'list' | 'none';

const MAX_MODEL = 1_024;

/** It may name an agent, which has a model of its own. */
const OTHERWISE = '/v1beta/interactions';

const PREFIXES = ['', ...PROVIDER_ENDPOINTS.flatMap(({ prefix }) => prefix ?? [])];
const BODY_POSTS = new Set([
  ...PREFIXES.flatMap((prefix) => [...COMMON_POSTS].map((endpoint) => prefix + endpoint)),
  ...PROVIDER_ENDPOINTS.flatMap(({ posts }) => posts).filter(
    (endpoint) => !endpoint.includes('<') && endpoint !== OTHERWISE,
  ),
]);
const LISTS = new Set([
  ...PREFIXES.map((prefix) => `${prefix}/v1/models`),
  ...PROVIDER_ENDPOINTS.flatMap(({ gets }) => gets ?? []),
]);
const WITH_MODEL_PARAMETER = new Set(['/v1/realtime']);

/** The characters that a segment with a model may have once it is decoded: no provider reads another path from these. */
const MODEL = /^[\w.~:@!$&'()*+,;=/-]+$/;
const SEGMENT = '([^/]+)';
const POST_PATHS = [
  // Gemini API: POST /v1beta/{model=models/*}:generateContent
  `/v1(?:alpha|beta)?/models/${SEGMENT}:[A-Za-z]+`,
  // Vertex AI; without a project in express mode
  `/v1(?:beta1)?/(?:projects/[^/]+/locations/[^/]+/)?publishers/[^/]+/models/${SEGMENT}:[A-Za-z]+`,
  // Amazon Bedrock Runtime
  `/model/${SEGMENT}/(?:invoke|invoke-with-response-stream|converse|converse-stream)`,
  // Azure OpenAI
  `/openai/deployments/${SEGMENT}/(?:chat/completions|completions|embeddings|images/(?:generations|edits)|audio/(?:speech|transcriptions|translations))`,
].map((path) => new RegExp(`^${path}$`));
const GET_PATHS = [new RegExp(`^(?:${PREFIXES.join('|')})/v1/models/(.+)$`)];

/**
 * Says where a request names its model. Only endpoints that are known to take the model from there count: any other one may
 * ignore it and read another model from a file or an earlier object.
 *
 * @param endpoint raw path after `/p/<provider>`, without the query
 * @param basePath path of the provider's URL, which some clients leave out
 */
export function modelSource(method: string, endpoint: string, basePath: string): ModelSource {
  const source = sourceOf(method, endpoint);
  if (basePath === '') return source;
  // The provider's URL may name a deployment: then a model in the body counts for nothing.
  const whole = sourceOf(method, basePath + endpoint);
  return source === 'none' || whole === 'path' ? whole : source;
}

function sourceOf(method: string, path: string): ModelSource {
  // A POST begins a session over WebRTC, whose use nobody here sees.
  if (method === 'GET' && WITH_MODEL_PARAMETER.has(path)) return 'query';
  if (method === 'POST' && BODY_POSTS.has(path)) return 'body';
  if (method === 'GET' && LISTS.has(path)) return 'list';
  return segmentOf(method, path) === undefined ? 'none' : 'path';
}

function segmentOf(method: string, path: string): string | undefined {
  const paths = method === 'POST' ? POST_PATHS : method === 'GET' ? GET_PATHS : [];
  return paths.map((pattern) => pattern.exec(path)?.[1]).find((segment) => segment !== undefined);
}

/** The model in a path whose source is `path`. */
export function modelOfPath(method: string, endpoint: string, basePath: string): NamedModel {
  const segment = segmentOf(method, basePath + endpoint) ?? segmentOf(method, endpoint) ?? '';
  const model = percentDecode(segment);
  if (!MODEL.test(model))
    return { model: null, problem: 'the model in the path has characters that no model has' };
  return { model, problem: null };
}

/** Values of the `model` parameters of a query, in any case and however their name is encoded. @param query without `?` */
export function modelsOfQuery(query: string): string[] {
  const values: string[] = [];
  for (const pair of query.split(/[&;]/)) {
    const at = pair.indexOf('=');
    const name = decodeParameter(at === -1 ? pair : pair.slice(0, at));
    if (isModelName(name)) values.push(at === -1 ? '' : decodeParameter(pair.slice(at + 1)));
  }
  return values;
}

/** The model in a query whose source is `query`. */
export function modelOfQuery(query: string): NamedModel {
  const [model, ...others] = modelsOfQuery(query);
  if (model === undefined) return { model: null, problem: 'the query has no model parameter' };
  if (others.length > 0) return { model: null, problem: 'the query has more than one model parameter' };
  if (!MODEL.test(model))
    return { model: null, problem: 'the model in the query has characters that no model has' };
  return { model, problem: null };
}

/** Parameters of a query whose source is `query` that choose no other model. */
const HARMLESS = new Set(['model', 'api-version']);

/** The model in a query whose source is `query`, if nothing else in the query can choose the session or its model. */
export function onlyModelOfQuery(query: string): NamedModel {
  const names = query.split(/[&;]/).map((pair) => pair.split('=', 1)[0]!);
  if (!names.every((name) => name === '' || HARMLESS.has(name)))
    return { model: null, problem: 'its query may only have the parameters model and api-version' };
  return modelOfQuery(query);
}

/** Twice, as some servers do. */
function decodeParameter(text: string): string {
  return percentDecode(percentDecode(text.replaceAll('+', ' ')));
}

/** What makes a body something else than its bytes; null if there is nothing of the kind. @param raw flat raw headers */
export function misleadingHeader(raw: readonly string[]): string | null {
  let types = 0;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!.toLowerCase();
    if (name === 'content-type' && ++types > 1) return 'the Content-Type is repeated';
    if (name === 'content-encoding' && raw[i + 1]!.toLowerCase() !== 'identity')
      return 'the body is compressed';
  }
  return null;
}

/** The same model, or the problem that it is empty or too long to be one. */
export function checkLength(named: NamedModel): NamedModel {
  if (named.model === null || (named.model !== '' && named.model.length <= MAX_MODEL)) return named;
  return { model: null, problem: `"model" is empty or longer than ${MAX_MODEL} characters` };
}
