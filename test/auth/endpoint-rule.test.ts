import { readFileSync } from 'node:fs';
import { allowsEndpoint } from '../../src/auth/endpoint-rule.js';
import { ownEndpoints, PROVIDER_ENDPOINTS } from '../../src/providers/inference-endpoints.js';
import { PRESETS } from '../../src/providers/presets.js';
import { never } from '../support/never.js';

const OPENAI = ownEndpoints('api.openai.com');

const may = (method: string, endpoint: string, rawHeaders: string[] = [], query = '') =>
  allowsEndpoint('inference', method, endpoint, rawHeaders, query, OPENAI);

const POSTS = [
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
  '/v1beta/models/gemini-2.0-flash:generateContent',
  '/v1beta/models/gemini-2.0-flash:streamGenerateContent',
  '/v1beta/openai/chat/completions',
  '/v1beta/openai/embeddings',
];
const GETS = [
  '/v1/models',
  '/v1/models/gpt-4o',
  '/v1/models/ft:gpt-4o:org/x',
  '/v1/models/meta%2Fllama',
  '/v1/models/ft%3Agpt-3.5-turbo-0613%3Aorg%3A%3A7p4lURel',
  '/v1/models/@cf/meta/llama-3.1-8b',
  '/v1/models/%40cf%2fmeta',
];

describe('an inference key', () => {
  never.each(POSTS)('may POST %s and nothing else there', (path) => {
    expect(may('POST', path)).toBe(true);
    for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'post', 'QUERY'])
      expect(may(method, path)).toBe(false);
  });

  never.each(GETS)('may GET %s and nothing else there', (path) => {
    expect(may('GET', path)).toBe(true);
    for (const method of ['POST', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'get'])
      expect(may(method, path)).toBe(false);
  });

  never.each(POSTS.filter((path) => !path.includes('/models/')))('may not POST a variant of %s', (path) => {
    const variants = [`${path}/`, `${path}/y`, path.toUpperCase(), `/${path}`, path.slice(1), `${path};a=1`];
    variants.push(
      path.replace('/v1', '/v1/'),
      `${path.slice(0, -1)}%${path.charCodeAt(path.length - 1).toString(16)}`,
      `${path}%20`,
      `/v2${path.slice(3)}`,
    );
    for (const variant of variants) expect(may('POST', variant)).toBe(false);
  });

  never.each([
    ['GET', '/v1/files'],
    ['POST', '/v1/files'],
    ['DELETE', '/v1/files/file-1'],
    ['GET', '/v1/files/file-1/content'],
    ['POST', '/v1/batches'],
    ['POST', '/v1/messages/batches'],
    ['POST', '/v1/responses/resp_1/cancel'],
    ['GET', '/v1/responses/input_tokens'],
    ['POST', '/v1/responses/input_items'],
    ['POST', '/v1/assistants'],
    ['POST', '/v1/threads/t/runs'],
    ['GET', '/v1/responses/resp_1'],
    ['DELETE', '/v1/responses/resp_1'],
    ['GET', '/v1/chat/completions'],
    ['POST', '/v1/fine_tuning/jobs'],
    ['GET', '/v1/organization/users'],
    ['POST', '/v1/vector_stores'],
    ['DELETE', '/v1/models/ft:mine'],
    ['GET', '/v1/models/'],
    ['GET', '/v1/modelsx'],
    ['GET', '/v1beta/models'],
    ['POST', '/v1beta/models/'],
    ['POST', '/v1beta/models/a/b'],
    ['POST', '/v1beta/files'],
    ['POST', '/v1'],
    ['POST', '/'],
    ['POST', ''],
  ])('may not %s %s', (method, path) => {
    expect(may(method, path)).toBe(false);
    expect(allowsEndpoint('all', method, path, [], '', OPENAI)).toBe(true);
  });

  // What some decoder could take for a dot segment.
  never.each([
    '%25252e%25252e/files',
    '%c0%ae%c0%ae/files',
    '%ef%bc%8e%ef%bc%8e/files',
    '..%20/files',
    '..%23/files',
    '..%3f/files',
    '..%ff/files',
    'x%5c..%5cfiles',
    'a%00',
    '',
    '/x',
  ])('may not use the models with the name %j', (name) => {
    expect(may('GET', `/v1/models/${name}`)).toBe(false);
    expect(may('POST', `/v1beta/models/${name.replaceAll('/', '%2f')}`)).toBe(name === '/x');
    expect(allowsEndpoint('all', 'GET', `/v1/models/${name}`, [], '', OPENAI)).toBe(true);
  });

  never.each([
    'X-HTTP-Method-Override',
    'x-http-method',
    'X-METHOD-OVERRIDE',
    'X-Original-URL',
    'X_ORIGINAL_URI',
    'x-rewrite-url',
    'X.Method.Override',
    '_x-!http__method.',
    'x-override-url',
    'X-Rewrite-Path',
    'x_envoy~original_path',
  ])('may not send %s', (name) => {
    const headers = ['Accept', '*/*', name, 'DELETE'];
    expect(may('POST', '/v1/chat/completions', headers)).toBe(false);
    expect(may('GET', '/v1/models', headers)).toBe(false);
    expect(allowsEndpoint('all', 'POST', '/v1/chat/completions', headers, '', OPENAI)).toBe(true);
  });

  it.each(['X-Method', 'X-Original-URL-Hash', 'XOriginalURL', 'X-Stainless-Arch', 'A-X-Original-URL'])(
    'may send %s',
    (name) => {
      expect(may('POST', '/v1/chat/completions', [name, 'DELETE'])).toBe(true);
    },
  );

  it.each([
    ['?_method=DELETE', false],
    ['?a=b&_METHOD=PUT', false],
    ['?a;_method', false],
    ['?%5fmethod[]=x', false],
    ['?%5F%6d%65thod%5b%5d=x', false],
    ['?%255fmethod=x', false],
    ['?%25%35fmethod%255B%255D=x', false],
    ['?payment_method=x', true],
    ['?payment%255fmethod=x', true],
    ['?a=_method', true],
    ['?alt=sse', true],
  ])('with the query %s: %s', (query, allowed) => {
    expect(may('POST', '/v1/chat/completions', [], query)).toBe(allowed);
    expect(allowsEndpoint('all', 'POST', '/v1/chat/completions', [], query, OPENAI)).toBe(true);
  });
});

const VERTEX = '/v1/projects/example.com:my-project/locations/us-east5/publishers';

describe('the inference endpoints of one provider', () => {
  const at = (host: string, method: string, path: string) =>
    allowsEndpoint('inference', method, path, [], '', ownEndpoints(host));

  const OWN: [host: string, method: string, path: string][] = [
    ['api.groq.com', 'POST', '/openai/v1/chat/completions'],
    ['api.groq.com', 'POST', '/openai/v1/audio/transcriptions'],
    ['api.groq.com', 'GET', '/openai/v1/models'],
    ['api.groq.com', 'GET', '/openai/v1/models/openai%2Fgpt-oss-20b'],
    ['openrouter.ai', 'POST', '/api/v1/chat/completions'],
    ['api.cohere.com', 'POST', '/v2/chat'],
    ['api.cohere.com', 'POST', '/v2/embed'],
    ['api.cohere.com', 'POST', '/v2/rerank'],
    ['api.cohere.ai', 'POST', '/v1/chat'],
    ['api.cohere.com', 'POST', '/v1/embed'],
    ['api.cohere.com', 'POST', '/compatibility/v1/chat/completions'],
    ['generativelanguage.googleapis.com', 'POST', '/v1beta/interactions'],
    ['generativelanguage.googleapis.com', 'POST', '/v1/models/gemini-2.5-pro:generateContent'],
    ['generativelanguage.googleapis.com', 'POST', '/v1alpha/models/gemini-2.5-pro:streamGenerateContent'],
    ['generativelanguage.googleapis.com', 'POST', '/v1alpha/models/gemini-embedding-001:batchEmbedContents'],
    ['aiplatform.googleapis.com', 'POST', '/v1beta1/publishers/google/models/gemini-2.5-pro:generateContent'],
    ['aiplatform.googleapis.com', 'POST', '/v1/publishers/google/models/gemini-2.5-pro:countTokens'],
    ['aiplatform.googleapis.com', 'POST', `${VERTEX}/google/models/gemini-2.5-pro:generateContent`],
    [
      'us-east5-aiplatform.googleapis.com',
      'POST',
      `${VERTEX}/anthropic/models/claude-opus-4@20250514:rawPredict`,
    ],
    ['aiplatform.eu.rep.googleapis.com', 'POST', `${VERTEX}/anthropic/models/c:streamRawPredict`],
    ['aiplatform.googleapis.com', 'POST', `${VERTEX.replace('v1', 'v1beta1')}/google/models/m:countTokens`],
    ['mine.openai.azure.com', 'POST', '/openai/deployments/my-gpt/chat/completions'],
    ['mine.openai.azure.com', 'POST', '/openai/deployments/my$&gpt/audio/speech'],
    ['mine.openai.azure.com', 'POST', '/openai/responses'],
    ['mine.openai.azure.com', 'POST', '/openai/responses/input_tokens'],
    ['mine.openai.azure.com', 'POST', '/openai/v1/responses'],
    ['mine.openai.azure.com', 'POST', '/openai/v1/responses/compact'],
    ['bedrock-runtime.us-east-1.amazonaws.com', 'POST', '/model/us.anthropic.claude-sonnet-4-v1:0/converse'],
    ['bedrock-runtime.us-east-1.amazonaws.com', 'POST', '/model/m/invoke-with-response-stream'],
    ['bedrock-runtime.us-east-1.amazonaws.com', 'POST', '/model/us.amazon.nova-lite-v1%3A0/converse-stream'],
    ['bedrock-runtime.eu-west-1.amazonaws.com', 'POST', '/model/m/invoke'],
    ['chatgpt.com', 'POST', '/backend-api/codex/responses'],
    ['chatgpt.com', 'GET', '/backend-api/codex/models'],
    ['api.voyageai.com', 'POST', '/v1/multimodalembeddings'],
    ['api.writer.com', 'POST', '/v1/chat'],
    ['api.deepseek.com', 'POST', '/chat/completions'],
  ];

  it.each(OWN)('of %s has %s %s, which OpenAI has not', (host, method, path) => {
    expect(at(host, method, path)).toBe(true);
    expect(at('api.openai.com', method, path)).toBe(false);
    for (const variant of [
      `${path}/`,
      `${path}/x`,
      `/x${path}`,
      path.replace('/', '/../'),
      path.toUpperCase(),
    ])
      if (!variant.includes('/models/')) expect(at(host, method, variant)).toBe(false);
    expect(at(host, 'DELETE', path)).toBe(false);
  });

  // What a server of one's own serves is not known by its host.
  it.each([...OWN, ['127.0.0.1', 'POST', '/api/chat'], ['ollama', 'GET', '/api/tags']])(
    'on another host includes, as on %s, %s %s',
    (_host, method, path) => {
      expect(at('llm.example.test', method, path)).toBe(true);
    },
  );

  never.each([
    ['api.groq.com', 'POST', '/openai/v1/files'],
    ['api.groq.com', 'GET', '/openai/v1/batches'],
    ['api.cohere.com', 'POST', '/v1/datasets'],
    ['api.cohere.com', 'GET', '/v1/embed-jobs'],
    ['generativelanguage.googleapis.com', 'GET', '/v1beta/interactions/v1_1'],
    ['generativelanguage.googleapis.com', 'POST', '/upload/v1beta/files'],
    ['generativelanguage.googleapis.com', 'POST', '/v1/models/gemini-2.5-pro'],
    ['generativelanguage.googleapis.com', 'POST', '/v1/models/gemini-2.5-pro:batchGenerateContent'],
    ['generativelanguage.googleapis.com', 'POST', '/v1alpha/models/veo-3:predictLongRunning'],
    ['generativelanguage.googleapis.com', 'POST', '/v1alpha/models/m/operations/o:generateContent'],
    ['generativelanguage.googleapis.com', 'POST', '/v1/tunedModels/m:generateContent'],
    ['generativelanguage.googleapis.com', 'POST', '/v1alpha/cachedContents'],
    ['aiplatform.googleapis.com', 'POST', '/v1beta1/publishers/google/models/veo:predictLongRunning'],
    ['aiplatform.googleapis.com', 'POST', '/v1/publishers/google/models/a/b:generateContent'],
    ['aiplatform.googleapis.com', 'GET', '/v1beta1/publishers/google/models/gemini-2.5-pro'],
    ['aiplatform.googleapis.com', 'POST', '/v1beta1/cachedContents'],
    ['mine.openai.azure.com', 'GET', '/openai/responses/resp_1'],
    ['mine.openai.azure.com', 'POST', '/openai/responses/resp_1/cancel'],
    ['mine.openai.azure.com', 'GET', '/openai/responses/resp_1/input_items'],
    ['mine.openai.azure.com', 'POST', '/openai/vector_stores'],
    // Operations are objects of whoever started them.
    ['aiplatform.googleapis.com', 'POST', `${VERTEX}/google/models/veo:predictLongRunning`],
    ['aiplatform.googleapis.com', 'POST', `${VERTEX}/google/models/veo:fetchPredictOperation`],
    ['aiplatform.googleapis.com', 'POST', `${VERTEX}/google/models/a/b:generateContent`],
    ['aiplatform.googleapis.com', 'POST', `${VERTEX}/google/models/m%3AgenerateContent`],
    ['aiplatform.googleapis.com', 'POST', '/v1/projects/p/locations/l/endpoints/e:predict'],
    ['aiplatform.googleapis.com', 'POST', '/v1/projects/p/locations/l/cachedContents'],
    ['aiplatform.googleapis.com', 'GET', `${VERTEX}/google/models/m`],
    ['mine.openai.azure.com', 'POST', '/openai/deployments/<model>/audio/speech'],
    ['mine.openai.azure.com', 'POST', '/openai/files'],
    ['mine.openai.azure.com', 'POST', '/openai/deployments/a/b/chat/completions'],
    ['bedrock-runtime.us-east-1.amazonaws.com', 'POST', '/model/m/async-invoke'],
    ['llm.example.test', 'POST', '/v1/files'],
    ['llm.example.test', 'DELETE', '/api/delete'],
    ['llm.example.test', 'POST', '/api/pull'],
    ['api.groq.com.example.test', 'POST', '/openai/v1/files'],
  ])('of %s does not include %s %s', (host, method, path) => {
    expect(at(host, method, path)).toBe(false);
  });

  // The preset's URL ends in /openai, which AzureOpenAI and groq-sdk repeat.
  it.each([
    ['mine.openai.azure.com', '/deployments/my-gpt/chat/completions', true],
    ['mine.openai.azure.com', '/openai/deployments/my-gpt/chat/completions', true],
    ['mine.openai.azure.com', '/v1/responses', true],
    ['mine.openai.azure.com', '/responses', true],
    ['mine.openai.azure.com', '/responses/resp_1/cancel', false],
    ['mine.openai.azure.com', '/deployments/my-gpt/files', false],
    ['api.groq.com', '/deployments/my-gpt/chat/completions', false],
    ['llm.example.test', '/v2/chat', true],
  ])('of %s at /openai: %s is %s', (host, path, allowed) => {
    expect(allowsEndpoint('inference', 'POST', path, [], '', ownEndpoints(host, '/openai'))).toBe(allowed);
  });

  it('is documented', () => {
    const page = readFileSync('docs/reference/headers-and-bodies.md', 'utf8');
    for (const { title, prefix, posts, gets = [] } of PROVIDER_ENDPOINTS) {
      if (posts.length === 0 && prefix === undefined) continue;
      const row = page.split('\n').find((line) => line.startsWith(`| ${title.replace(' and ', ', ')} `));
      for (const endpoint of [...posts, ...gets]) {
        const last = endpoint.replace(/^\/openai\/deployments\/<model>\/|^\/v1.*:/, '');
        expect(row?.includes(`${endpoint}\``) || row?.includes(`\`${last}\``)).toBe(true);
      }
      if (prefix !== undefined) expect(row).toContain(`\`${prefix}\``);
    }
  });

  it('is known for every preset that is no local server', () => {
    for (const { url, example } of Object.values(PRESETS)) {
      const { hostname } = new URL((url ?? example!).replace(/<\w+>/, 'mine'));
      expect(ownEndpoints(hostname).posts.test('/api/chat')).toBe(
        ['127.0.0.1', 'mcp.example.com'].includes(hostname),
      );
    }
  });
});
