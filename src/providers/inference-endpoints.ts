/** Endpoints that any provider may have: those of OpenAI, Anthropic and Gemini, whose paths others have taken over. */
export const COMMON_POSTS: ReadonlySet<string> = new Set([
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/responses',
  '/v1/responses/compact',
  '/v1/responses/input_tokens',
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

/** Whether the client of this request speaks Anthropic's API. @param target raw request target */
export function isAnthropic(target: string | undefined): boolean {
  return target !== undefined && /^(?:\/p\/[^/?]+)?\/v1\/messages(?:[/?]|$)/.test(target);
}

/**
 * Characters of model names, with an encoded `/`, `:` or `@`. A lenient decoder could read other escapes as a dot segment
 * (a dot encoded three times or overlong, a blank after two dots) and so leave the models path.
 */
const MODEL = String.raw`(?:[\w.~:@!$&'()*+,;=-]|%(?:2[Ff]|3[Aa]|40))+`;
/** Characters of the names of projects, locations and publishers; a project may begin with a domain. */
const NAME = String.raw`[\w.:-]+`;
/** Gemini names model and method in one segment: `gemini-2.0-flash:generateContent`. */
export const GEMINI_POST = new RegExp(`^/v1beta/models/${MODEL}$`);
export const MODELS_GET = new RegExp(`^/v1/models(?:/${MODEL})*$`);

/** Inference endpoints that one provider has besides the common ones. `<model>` stands for a model or a deployment, `<name>` for a name. */
export interface ProviderEndpoints {
  /** Display name. */
  readonly title: string;
  /** Its hosts; undefined for a server that runs anywhere. */
  readonly hosts?: RegExp;
  /** The common `/v1` endpoints exist below this path as well. */
  readonly prefix?: string;
  readonly posts: readonly string[];
  readonly gets?: readonly string[];
}

/** The second one is that of express mode: an API key names the project. */
const VERTEX_MODELS = [
  'projects/<name>/locations/<name>/publishers/<name>/models/<model>',
  'publishers/<name>/models/<model>',
];

/** From each provider's own API reference. */
export const PROVIDER_ENDPOINTS: readonly ProviderEndpoints[] = [
  { title: 'Groq', hosts: /^api\.groq\.com$/, prefix: '/openai', posts: [] },
  { title: 'OpenRouter', hosts: /^openrouter\.ai$/, prefix: '/api', posts: [] },
  {
    title: 'Cohere',
    hosts: /^api\.cohere\.(?:com|ai)$/,
    prefix: '/compatibility',
    posts: [
      ...['/v2/chat', '/v2/embed', '/v2/rerank'],
      ...['/v1/chat', '/v1/embed', '/v1/generate', '/v1/classify', '/v1/tokenize', '/v1/detokenize'],
    ],
  },
  {
    title: 'Gemini',
    hosts: /^generativelanguage\.googleapis\.com$/,
    // v1beta is common. Without batchGenerateContent and predictLongRunning, whose results any team could read.
    posts: [
      '/v1beta/interactions',
      ...['v1', 'v1alpha'].flatMap((version) =>
        [
          ...['generateContent', 'streamGenerateContent', 'countTokens', 'embedContent'],
          ...['batchEmbedContents', 'predict'],
        ].map((verb) => `/${version}/models/<model>:${verb}`),
      ),
    ],
  },
  {
    title: 'Vertex AI',
    hosts: /^(?:(?:[a-z0-9-]+-)?aiplatform|aiplatform\.[a-z0-9-]+\.rep)\.googleapis\.com$/,
    // Without predictLongRunning and fetchPredictOperation: an operation is an object that any team could read.
    posts: ['v1', 'v1beta1'].flatMap((version) =>
      VERTEX_MODELS.flatMap((model) =>
        [
          ...['generateContent', 'streamGenerateContent', 'countTokens', 'computeTokens', 'embedContent'],
          ...['predict', 'rawPredict', 'streamRawPredict'],
        ].map((verb) => `/${version}/${model}:${verb}`),
      ),
    ),
  },
  {
    title: 'Azure OpenAI',
    hosts: /\.(?:openai\.azure|cognitiveservices\.azure|services\.ai\.azure)\.com$/,
    prefix: '/openai',
    posts: [
      ...[
        'chat/completions',
        'completions',
        'embeddings',
        'images/generations',
        'images/edits',
        'audio/speech',
        'audio/transcriptions',
        'audio/translations',
      ].map((endpoint) => `/openai/deployments/<model>/${endpoint}`),
      // Where AzureOpenAI sends them, with an api-version: they have no deployment in the path.
      ...['/openai/responses', '/openai/responses/compact', '/openai/responses/input_tokens'],
    ],
  },
  {
    title: 'Amazon Bedrock',
    hosts: /^bedrock-runtime(?:-fips)?\.[a-z0-9-]+\.amazonaws\.com(?:\.cn)?$/,
    prefix: '/openai',
    posts: ['converse', 'converse-stream', 'invoke', 'invoke-with-response-stream'].map(
      (operation) => `/model/<model>/${operation}`,
    ),
  },
  {
    title: 'ChatGPT',
    hosts: /^chatgpt\.com$/,
    posts: ['/backend-api/codex/responses', '/backend-api/codex/responses/compact'],
    gets: ['/backend-api/codex/models'],
  },
  {
    title: 'Voyage',
    hosts: /^api\.voyageai\.com$/,
    posts: ['/v1/multimodalembeddings', '/v1/contextualizedembeddings'],
  },
  { title: 'Writer', hosts: /^api\.writer\.com$/, posts: ['/v1/chat'] },
  {
    title: 'DeepSeek and Perplexity',
    hosts: /^api\.(?:deepseek\.com|perplexity\.ai)$/,
    posts: ['/chat/completions'],
  },
  {
    title: 'Others, which have the common ones only',
    hosts: /^api\.(?:openai\.com|anthropic\.com|mistral\.ai|together\.ai|x\.ai)$/,
    posts: [],
  },
  {
    title: 'Ollama',
    posts: ['/api/chat', '/api/generate', '/api/embed', '/api/embeddings'],
    gets: ['/api/tags'],
  },
];

/** Matches the inference endpoints that a provider has besides the common ones. */
export interface OwnEndpoints {
  readonly posts: RegExp;
  readonly gets: RegExp;
}

/** Those of all providers. */
export const ANY_PROVIDER = matcher(PROVIDER_ENDPOINTS, '');

/**
 * The inference endpoints of the provider at this URL. A host of no known provider may be a model server, a proxy or
 * a gateway: it gets those of all.
 *
 * @param basePath path of the provider's URL, which requests may leave out
 */
export function ownEndpoints(hostname: string, basePath = ''): OwnEndpoints {
  const own = PROVIDER_ENDPOINTS.filter(({ hosts }) => hosts?.test(hostname));
  return matcher(own.length === 0 ? PROVIDER_ENDPOINTS : own, basePath);
}

function matcher(all: readonly ProviderEndpoints[], basePath: string): OwnEndpoints {
  const posts = all.flatMap(({ posts, prefix }) => [
    ...posts,
    ...(prefix === undefined ? [] : below(prefix, [...COMMON_POSTS])),
  ]);
  const gets = all.flatMap(({ gets = [], prefix }) => [
    ...gets,
    ...(prefix === undefined ? [] : below(prefix, ['/v1/models', '/v1/models/<model>'])),
  ]);
  return { posts: exactly(posts, basePath), gets: exactly(gets, basePath) };
}

function below(prefix: string, endpoints: readonly string[]): string[] {
  return endpoints.filter((endpoint) => endpoint.startsWith('/v1/')).map((endpoint) => prefix + endpoint);
}

/** Matches these endpoints as they are, and without the base path that they start with. */
function exactly(endpoints: readonly string[], basePath: string): RegExp {
  const short = endpoints
    .filter((endpoint) => basePath !== '' && endpoint.startsWith(`${basePath}/`))
    .map((endpoint) => endpoint.slice(basePath.length));
  const patterns = [...endpoints, ...short].map((endpoint) =>
    endpoint
      .replaceAll('.', '\\.')
      .replaceAll(/<(model|name)>/g, (_, what) => (what === 'model' ? MODEL : NAME)),
  );
  // Without an alternative it would match the empty path.
  return patterns.length === 0 ? /(?!)/ : new RegExp(`^(?:${patterns.join('|')})$`);
}
