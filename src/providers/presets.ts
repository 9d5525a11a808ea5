import type { ProviderAuth } from './provider.js';

/** Where a well-known provider lives and how it wants its secret. */
export interface Preset {
  /** What people call it. */
  title: string;
  /** Without `/v1`, which callers send; null: everybody has one of their own, of the form of `example`. */
  url: string | null;
  example?: string;
  auth: ProviderAuth;
  /** False for local ones, which take none unless told otherwise. */
  needsSecret: boolean;
}

const bearer = (title: string, url: string): Preset => ({ title, url, auth: 'bearer', needsSecret: true });

/**
 * From each provider's own API reference. `/v1/*` is appended as it is, and so is what follows `/p/<name>`: Gemini's
 * native roads are `/p/gemini/v1beta/models/…`, its OpenAI-compatible ones `/p/gemini/v1beta/openai/…`.
 */
export const PRESETS: Readonly<Record<string, Preset>> = {
  openai: bearer('OpenAI', 'https://api.openai.com'),
  anthropic: {
    title: 'Anthropic',
    url: 'https://api.anthropic.com',
    auth: 'x-api-key',
    needsSecret: true,
  },
  gemini: {
    title: 'Google Gemini',
    url: 'https://generativelanguage.googleapis.com',
    auth: 'x-goog-api-key',
    needsSecret: true,
  },
  mistral: bearer('Mistral', 'https://api.mistral.ai'),
  groq: bearer('Groq', 'https://api.groq.com/openai'),
  // Its list of models is open to all: a test of it says nothing about the secret.
  openrouter: bearer('OpenRouter', 'https://openrouter.ai/api'),
  together: bearer('Together AI', 'https://api.together.ai'),
  // Its base is documented without /v1, and with it for OpenAI clients.
  deepseek: bearer('DeepSeek', 'https://api.deepseek.com'),
  xai: bearer('xAI', 'https://api.x.ai'),
  // The v1 API of a resource, not the older one with deployments and api-version.
  azure: {
    title: 'Azure OpenAI (v1 API)',
    url: null,
    example: 'https://<resource>.openai.azure.com/openai',
    auth: 'api-key',
    needsSecret: true,
  },
  vllm: { title: 'vLLM', url: 'http://127.0.0.1:8000', auth: 'bearer', needsSecret: false },
  ollama: { title: 'Ollama', url: 'http://127.0.0.1:11434', auth: 'bearer', needsSecret: false },
};
