import { allowsEndpoint } from '../../src/auth/endpoint-rule.js';

const may = (method: string, endpoint: string, rawHeaders: string[] = [], query = '') =>
  allowsEndpoint('inference', method, endpoint, rawHeaders, query);

const POSTS = [
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
  it.each(POSTS)('may POST %s and nothing else there', (path) => {
    expect(may('POST', path)).toBe(true);
    for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'post', 'QUERY'])
      expect(may(method, path)).toBe(false);
  });

  it.each(GETS)('may GET %s and nothing else there', (path) => {
    expect(may('GET', path)).toBe(true);
    for (const method of ['POST', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'get'])
      expect(may(method, path)).toBe(false);
  });

  it.each([...POSTS.slice(0, 14), ...POSTS.slice(16)])('may not POST a variant of %s', (path) => {
    const variants = [`${path}/`, `${path}/x`, path.toUpperCase(), `/${path}`, path.slice(1), `${path};a=1`];
    variants.push(
      path.replace('/v1', '/v1/'),
      `${path.slice(0, -1)}%${path.charCodeAt(path.length - 1).toString(16)}`,
      `${path}%20`,
      `/v2${path.slice(3)}`,
    );
    for (const variant of variants) expect(may('POST', variant)).toBe(false);
  });

  it.each([
    ['GET', '/v1/files'],
    ['POST', '/v1/files'],
    ['DELETE', '/v1/files/file-1'],
    ['GET', '/v1/files/file-1/content'],
    ['POST', '/v1/batches'],
    ['POST', '/v1/messages/batches'],
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
    expect(allowsEndpoint('all', method, path, [])).toBe(true);
  });

  // What some decoder could take for a dot segment.
  it.each([
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
    expect(allowsEndpoint('all', 'GET', `/v1/models/${name}`, [])).toBe(true);
  });

  it.each([
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
    expect(allowsEndpoint('all', 'POST', '/v1/chat/completions', headers)).toBe(true);
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
    expect(allowsEndpoint('all', 'POST', '/v1/chat/completions', [], query)).toBe(true);
  });
});
