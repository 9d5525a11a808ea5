export interface Snippet {
  id: string;
  label: string;
  text: string;
  /** Where it goes. */
  hint: string;
}

/** How programs use a key. `base` is the gateway's address; `model` one that the key may use. */
export function snippetsFor(key: string, base: string, model: string): Snippet[] {
  return [
    {
      id: 'curl',
      label: 'curl',
      hint: 'In a terminal.',
      text: `curl ${base}/v1/chat/completions \\
  -H "Authorization: Bearer ${key}" \\
  -H "Content-Type: application/json" \\
  -d '{"model": "${model}", "messages": [{"role": "user", "content": "Hello"}]}'`,
    },
    {
      id: 'openai',
      label: 'OpenAI',
      hint: 'Environment variables, which all OpenAI SDKs read.',
      text: `export OPENAI_BASE_URL=${base}/v1
export OPENAI_API_KEY=${key}`,
    },
    {
      id: 'anthropic',
      label: 'Anthropic',
      hint: 'Environment variables, which all Anthropic SDKs read. /p/anthropic is the provider with that name.',
      text: `export ANTHROPIC_BASE_URL=${base}/p/anthropic
export ANTHROPIC_API_KEY=${key}`,
    },
    {
      id: 'claude-code',
      label: 'Claude Code',
      hint: 'In a terminal, before claude is started.',
      text: `export ANTHROPIC_BASE_URL=${base}/p/anthropic
export ANTHROPIC_AUTH_TOKEN=${key}
claude`,
    },
    {
      id: 'codex',
      label: 'Codex',
      hint: 'The first part belongs into ~/.codex/config.toml, the second is for the terminal.',
      text: `model_provider = "postern"

[model_providers.postern]
name = "Postern"
base_url = "${base}/v1"
env_key = "POSTERN_KEY"
wire_api = "responses"

# In the terminal:
export POSTERN_KEY=${key}`,
    },
  ];
}
