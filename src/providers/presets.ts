import type { OnDisconnect } from './on-disconnect.js';
import type { AuthSettings, ProviderAuth } from './credentials/auth-kinds.js';

/** URL and authentication of a well-known provider. */
export interface Preset {
  /** Display name. */
  title: string;
  /**
   * Without `/v1`, which clients send; `<region>` stands for the region of the settings. Null if each customer has a URL of
   * their own, like `example`.
   */
  url: string | null;
  example?: string;
  auth: ProviderAuth;
  authSettings?: AuthSettings;
  /** False for local providers, which need none by default. */
  needsSecret: boolean;
  /** `finish` for providers that go on, and bill the whole response, when a client disconnects. */
  onDisconnect?: OnDisconnect;
}

const bearer = (title: string, url: string): Preset => ({ title, url, auth: 'bearer', needsSecret: true });

/**
 * From each provider's own API reference. `/v1/*` is appended unchanged, and so is the path after `/p/<name>`: Gemini's
 * native endpoints are `/p/gemini/v1beta/models/…`, its OpenAI-compatible ones `/p/gemini/v1beta/openai/…`.
 */
export const PRESETS: Readonly<Record<string, Preset>> = {
  openai: bearer('OpenAI', 'https://api.openai.com'),
  anthropic: {
    title: 'Anthropic',
    url: 'https://api.anthropic.com',
    auth: 'x-api-key',
    needsSecret: true,
  },
  // With a Claude subscription, Claude Code sends an OAuth token of its own.
  'claude-code': {
    title: 'Anthropic, with the credential of each caller',
    url: 'https://api.anthropic.com',
    auth: 'client',
    needsSecret: false,
  },
  // What Codex uses once it is signed in with ChatGPT.
  chatgpt: {
    title: 'ChatGPT, with the credential of each caller',
    url: 'https://chatgpt.com/backend-api/codex',
    auth: 'client',
    needsSecret: false,
  },
  gemini: {
    title: 'Google Gemini',
    url: 'https://generativelanguage.googleapis.com',
    auth: 'x-goog-api-key',
    needsSecret: true,
    onDisconnect: 'finish',
  },
  mistral: bearer('Mistral', 'https://api.mistral.ai'),
  groq: bearer('Groq', 'https://api.groq.com/openai'),
  cohere: bearer('Cohere', 'https://api.cohere.com'),
  // Its list of models is public, so a test request does not check the secret.
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
  // The path of the server, often /mcp, is sent by its clients.
  mcp: {
    title: 'MCP server',
    url: null,
    example: 'https://mcp.example.com',
    auth: 'bearer',
    needsSecret: true,
  },
  // The same with a token of Microsoft Entra ID.
  'azure-entra': {
    title: 'Azure OpenAI (v1 API) with Entra ID',
    url: null,
    example: 'https://<resource>.openai.azure.com/openai',
    auth: 'oauth2',
    authSettings: { scope: 'https://cognitiveservices.azure.com/.default' },
    needsSecret: true,
  },
  bedrock: {
    title: 'Amazon Bedrock',
    url: 'https://bedrock-runtime.<region>.amazonaws.com',
    auth: 'aws-sigv4',
    authSettings: { service: 'bedrock' },
    needsSecret: true,
    onDisconnect: 'finish',
  },
  // The global endpoint; those of regions are https://<region>-aiplatform.googleapis.com.
  vertex: {
    title: 'Google Vertex AI',
    url: 'https://aiplatform.googleapis.com',
    auth: 'google',
    needsSecret: true,
    onDisconnect: 'finish',
  },
  vllm: { title: 'vLLM', url: 'http://127.0.0.1:8000', auth: 'bearer', needsSecret: false },
  ollama: { title: 'Ollama', url: 'http://127.0.0.1:11434', auth: 'bearer', needsSecret: false },
};
