import { COMMON_POSTS, PROVIDER_ENDPOINTS } from '../../../src/providers/inference-endpoints.js';
import { modelOfPath, modelSource } from '../../../src/proxy/policies/model-source.js';
import { modelFromPath } from '../../../src/bodies/path-model.js';

it('finds where each inference endpoint names its model', () => {
  const posts = PROVIDER_ENDPOINTS.flatMap(({ posts, prefix }) => [
    ...posts,
    ...(prefix === undefined ? [] : [`${prefix}/v1/chat/completions`]),
  ]);
  const unknown = [...COMMON_POSTS, ...posts].filter((endpoint) => {
    const path = endpoint.replaceAll(/<(?:model|name)>/g, 'm');
    return modelSource('POST', path, '') !== (endpoint === path ? 'body' : 'path');
  });
  expect(unknown).toEqual(['/v1beta/interactions']);
  const gets = PROVIDER_ENDPOINTS.flatMap(({ gets }) => gets ?? []);
  expect(['/v1/models', '/openai/v1/models', ...gets].map((path) => modelSource('GET', path, ''))).toEqual(
    Array.from({ length: gets.length + 2 }, () => 'list'),
  );
});

it.each([
  '/v1/models/d:generateContent',
  '/v1alpha/models/d:streamGenerateContent',
  '/v1beta1/publishers/google/models/d:generateContent',
  '/v1/publishers/google/models/d:streamGenerateContent',
  '/v1/projects/p/locations/l/publishers/google/models/d:countTokens',
])('reads the model of %s', (endpoint) => {
  expect(modelOfPath('POST', endpoint, '')).toEqual({ model: 'd', problem: null });
  expect(modelFromPath(endpoint)).toBe('d');
});

it.each([
  ['/responses', '/openai', 'body'],
  ['/deployments/d/chat/completions', '/openai', 'path'],
  ['/deployments/d/chat/completions', '', 'none'],
  ['/chat/completions', '/openai/deployments/d', 'path'],
  ['/v1/chat/completions', '/openai', 'body'],
  ['/chat', '/api', 'body'],
  ['/v1/batches', '/openai', 'none'],
])('%s of a provider with the path "%s": %s', (endpoint, basePath, source) => {
  expect(modelSource('POST', endpoint, basePath)).toBe(source);
  if (source === 'path')
    expect(modelOfPath('POST', endpoint, basePath)).toEqual({ model: 'd', problem: null });
});
