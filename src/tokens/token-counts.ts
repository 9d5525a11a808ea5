/** Token counts of one call, as the provider reports them; null if it reports none. */
export interface TokenCounts {
  prompt_tokens: number | null;
  completion_tokens: number | null;
  cached_tokens: number | null;
  reasoning_tokens: number | null;
}

/** The usage that a response reports. */
export interface Usage extends TokenCounts {
  /** The model named in the response. */
  model: string | null;
}

export const NO_USAGE: Readonly<Usage> = Object.freeze({
  model: null,
  prompt_tokens: null,
  completion_tokens: null,
  cached_tokens: null,
  reasoning_tokens: null,
});

/** Largest value of a Postgres `int`. */
const MOST_TOKENS = 2_147_483_647;

/**
 * Reads the counts of a `usage` object. Each field has one meaning wherever it appears, so the name decides and not the
 * path. The counts are taken as they are and never added up, although providers count differently:
 *
 * - OpenAI chat, completions and embeddings (`prompt_tokens`) and OpenAI responses, audio and images (`input_tokens`):
 *   the prompt includes what came from the cache, the completion includes the reasoning.
 * - Anthropic messages: `input_tokens` is only what was neither read from nor written to the cache, so `cached_tokens`
 *   comes on top of it; `output_tokens` includes the thinking.
 *
 * @returns null if it is not an object or has no count
 */
export function usageCounts(usage: unknown): TokenCounts | null {
  const input = field(usage, 'prompt_tokens_details') ?? field(usage, 'input_tokens_details');
  const output = field(usage, 'completion_tokens_details') ?? field(usage, 'output_tokens_details');
  return counts(
    tokens(usage, 'prompt_tokens') ?? tokens(usage, 'input_tokens'),
    tokens(usage, 'completion_tokens') ?? tokens(usage, 'output_tokens'),
    tokens(input, 'cached_tokens') ?? tokens(usage, 'cache_read_input_tokens'),
    tokens(output, 'reasoning_tokens') ?? tokens(output, 'thinking_tokens'),
  );
}

/**
Reads the counts of a Gemini `usageMetadata` object: the prompt includes the cached content; the candidates do not include the thoughts
 * (Gemini API, UsageMetadata), which are not added to them here.
 */
export function metadataCounts(metadata: unknown): TokenCounts | null {
  return counts(
    tokens(metadata, 'promptTokenCount'),
    tokens(metadata, 'candidatesTokenCount'),
    tokens(metadata, 'cachedContentTokenCount'),
    tokens(metadata, 'thoughtsTokenCount'),
  );
}

/** A member of a JSON value; undefined if the value is not an object. */
function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;
}

function counts(
  prompt: number | null,
  completion: number | null,
  cached: number | null,
  reasoning: number | null,
): TokenCounts | null {
  if ((prompt ?? completion ?? cached ?? reasoning) === null) return null;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    cached_tokens: cached,
    reasoning_tokens: reasoning,
  };
}

function tokens(object: unknown, name: string): number | null {
  const value = field(object, name);
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MOST_TOKENS
    ? value
    : null;
}
