import { onDisconnectOf } from '../../src/providers/on-disconnect.js';
import { newProviderSchema } from '../../src/providers/providers.schema.js';
import { PRESETS } from '../../src/providers/presets.js';
import { makeProvider } from '../../src/providers/provider.js';

describe('the presets', () => {
  it.each(Object.entries(PRESETS))('%s is an acceptable provider as it stands', (name, preset) => {
    const url = (preset.url ?? preset.example!)
      .replace('<resource>', 'my-resource')
      .replace('<region>', 'eu-west-1');
    const order = { name, url, auth: preset.auth, secret: null };
    expect(newProviderSchema.parse(order)).toMatchObject(order);
    // A file of `postern apply` names no preset: it gets the same by the URL.
    expect(onDisconnectOf(url)).toBe(preset.onDisconnect ?? 'cancel');
    expect(preset.needsSecret).toBe(url.startsWith('https://') && preset.auth !== 'client');
  });

  // As each provider's own API reference has them.
  it.each([
    ['openai', '/v1/chat/completions', 'https://api.openai.com/v1/chat/completions'],
    ['anthropic', '/v1/messages', 'https://api.anthropic.com/v1/messages'],
    [
      'gemini',
      '/v1beta/models/gemini-2.5-flash:generateContent',
      'https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent',
    ],
    ['claude-code', '/v1/messages', 'https://api.anthropic.com/v1/messages'],
    ['chatgpt', '/responses', 'https://chatgpt.com/backend-api/codex/responses'],
    ['mistral', '/v1/chat/completions', 'https://api.mistral.ai/v1/chat/completions'],
    ['groq', '/v1/chat/completions', 'https://api.groq.com/openai/v1/chat/completions'],
    ['cohere', '/v2/chat', 'https://api.cohere.com/v2/chat'],
    ['openrouter', '/v1/chat/completions', 'https://openrouter.ai/api/v1/chat/completions'],
    ['together', '/v1/chat/completions', 'https://api.together.ai/v1/chat/completions'],
    ['deepseek', '/v1/chat/completions', 'https://api.deepseek.com/v1/chat/completions'],
    ['xai', '/v1/chat/completions', 'https://api.x.ai/v1/chat/completions'],
    ['vllm', '/v1/chat/completions', 'http://127.0.0.1:8000/v1/chat/completions'],
    ['ollama', '/v1/chat/completions', 'http://127.0.0.1:11434/v1/chat/completions'],
  ])('%s serves %s where it should', (name, rest, full) => {
    const { origin, basePath } = makeProvider(name, PRESETS[name]!.url!, PRESETS[name]!.auth, null);
    expect(origin + basePath + rest).toBe(full);
  });
});
