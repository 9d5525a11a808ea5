import { findProvider } from '@pydantic/genai-prices';
import { PRESETS } from '../../src/providers/presets.js';
import { catalogOf } from '../../src/providers/provider-catalog.js';
import { catalogProviders } from './catalog.js';
import { never } from '../support/never.js';

never('has the price list of every preset that has one, and none for a local provider', () => {
  const lists = Object.entries(PRESETS).map(([name, { url, example }]) => [
    name,
    catalogOf((url ?? example!).replace(/<[a-z]+>/, 'mine')),
  ]);
  expect(Object.fromEntries(lists)).toEqual({
    openai: 'openai',
    anthropic: 'anthropic',
    gemini: 'google',
    mistral: 'mistral',
    groq: 'groq',
    cohere: 'cohere',
    openrouter: 'openrouter',
    together: 'together',
    deepseek: 'deepseek',
    xai: 'x-ai',
    azure: 'azure',
    'azure-entra': 'azure',
    bedrock: 'aws',
    vertex: 'google',
    'claude-code': 'anthropic',
    chatgpt: null,
    mcp: null,
    vllm: null,
    ollama: null,
  });
});

never.each([
  'https://api.openai.com.evil.example',
  'https://evil-googleapis.com',
  'https://proxy.example/api.openai.com',
  'no url',
])('has no list for %s', (url) => {
  expect(catalogOf(url)).toBeNull();
});

// The patterns of the catalog that name one host, such as https://api\.x\.ai.
it('names the lists as the catalog does', () => {
  const hosts = catalogProviders().flatMap(({ id, api_pattern: pattern }) =>
    /^https:\/\/[a-z0-9-]+(\\\.[a-z0-9-]+)+$/.test(pattern)
      ? [[id, pattern.replaceAll('\\', '')] as const]
      : [],
  );
  expect(hosts.length).toBeGreaterThan(15);
  for (const [id, url] of hosts) {
    expect([null, id]).toContain(catalogOf(url));
    expect(findProvider({ providerId: id })!.id).toBe(id);
  }
});
