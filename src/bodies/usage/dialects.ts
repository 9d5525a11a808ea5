import type { ExtraCounts } from './token-usage.js';

/** A usage object as the provider sent it. */
export type Json = Readonly<Record<string, unknown>>;

/** The counts that a dialect reads from a usage object, as the provider counts them. */
export interface Counts {
  input: number | null;
  /** Input tokens that `input` does not include. */
  inputApart?: number | null;
  cached?: number | null;
  cacheWrite?: number | null;
  output: number | null;
  reasoning?: number | null;
  /** Whether `output` leaves reasoning out, unless `total` says otherwise. */
  reasoningApart?: boolean;
  total?: number | null;
  /** Null and 0 are left out later. */
  extra?: { readonly [Name in keyof ExtraCounts]?: number | null };
}

/** How one family of APIs reports usage. */
export interface Dialect {
  /** A usage object with one of these members is in this dialect. */
  readonly members: readonly string[];
  /** These members are no counts, but objects or seconds. */
  readonly hasOtherValues?: true;
  /** @param endpoint raw path after `/p/<provider>`, without the query */
  read(usage: Json, endpoint: string): Counts;
}

/** Gemini's OpenAI-compatible endpoints, of the Gemini API and of Vertex AI. */
const GEMINI_COMPATIBLE = /\/v1beta\/openai\/|\/endpoints\/openapi\//;
const INPUT_ONLY = /\/(?:\w*embeddings|rerank)$/;

/** OpenAI chat, completions and embeddings, and most others. Cached input is part of the input. */
const OPENAI_CHAT: Dialect = {
  members: ['prompt_tokens', 'completion_tokens'],
  read(usage, endpoint) {
    const prompt = usage.prompt_tokens_details;
    const completion = usage.completion_tokens_details;
    const input = count(usage, 'prompt_tokens');
    const output = count(usage, 'completion_tokens');
    const total = count(usage, 'total_tokens');
    const uncounted = total === null || input === null || output === null ? 0 : total - input - output;
    return {
      input,
      // Mistral: num_cached_tokens. DeepSeek: prompt_cache_hit_tokens. Moonshot and Together: cached_tokens.
      cached:
        count(prompt, 'cached_tokens') ??
        count(usage, 'prompt_cache_hit_tokens') ??
        count(usage, 'cached_tokens') ??
        count(usage, 'num_cached_tokens') ??
        count(usage, 'cache_read_input_tokens'),
      // OpenRouter: cache_write_tokens. Alibaba and LiteLLM: cache_creation_input_tokens.
      cacheWrite:
        count(prompt, 'cache_write_tokens') ??
        count(prompt, 'cache_creation_input_tokens') ??
        count(usage, 'cache_creation_input_tokens'),
      output,
      // xAI counts reasoning beside the completion, as its total shows. Gemini's leave thinking out of all but the total
      // (many report it; it is not in Google's reference).
      reasoning:
        count(completion, 'reasoning_tokens') ??
        count(usage, 'reasoning_tokens') ??
        (uncounted > 0 && GEMINI_COMPATIBLE.test(endpoint) ? uncounted : null),
      total,
      extra: {
        input_audio_tokens: count(prompt, 'audio_tokens'),
        output_audio_tokens: count(completion, 'audio_tokens'),
        // Mistral's transcriptions.
        input_audio_seconds: wholeSeconds(usage.prompt_audio_seconds),
        input_image_tokens: count(prompt, 'image_tokens'),
        output_image_tokens: count(completion, 'image_tokens'),
        // Perplexity: num_search_queries. OpenRouter: server_tool_use.
        web_searches:
          count(usage, 'num_search_queries') ?? count(usage.server_tool_use, 'web_search_requests'),
      },
    };
  },
};

/**
 * OpenAI responses, audio and images, whose input includes what was read from the cache; and Anthropic messages, whose
 * input does not, nor what was written to it.
 */
const INPUT_OUTPUT: Dialect = {
  members: ['input_tokens', 'output_tokens'],
  read(usage) {
    // Transcriptions spell it in the singular.
    const input = usage.input_tokens_details ?? usage.input_token_details;
    const output = usage.output_tokens_details ?? usage.output_token_details;
    // The Realtime API: what of the cached input is audio or images.
    const cached = field(input, 'cached_tokens_details');
    const read = count(usage, 'cache_read_input_tokens');
    const written = count(usage, 'cache_creation_input_tokens');
    return {
      input: count(usage, 'input_tokens'),
      inputApart: sum(read, written),
      cached: count(input, 'cached_tokens') ?? read,
      cacheWrite: count(input, 'cache_write_tokens') ?? written,
      output: count(usage, 'output_tokens'),
      reasoning: count(output, 'reasoning_tokens') ?? count(output, 'thinking_tokens'),
      total: count(usage, 'total_tokens'),
      extra: {
        cache_write_1h_tokens: count(usage.cache_creation, 'ephemeral_1h_input_tokens'),
        input_audio_tokens: count(input, 'audio_tokens'),
        cached_audio_tokens: count(cached, 'audio_tokens'),
        output_audio_tokens: count(output, 'audio_tokens'),
        input_image_tokens: count(input, 'image_tokens'),
        cached_image_tokens: count(cached, 'image_tokens'),
        output_image_tokens: count(output, 'image_tokens'),
        web_searches: count(usage.server_tool_use, 'web_search_requests'),
      },
    };
  },
};

/** Gemini and Vertex AI. The prompt includes cached content; tool results are counted beside it, thoughts beside the candidates. */
const GEMINI: Dialect = {
  members: ['promptTokenCount', 'candidatesTokenCount', 'totalTokenCount'],
  read: (usage) => ({
    input: count(usage, 'promptTokenCount'),
    inputApart: count(usage, 'toolUsePromptTokenCount'),
    cached: count(usage, 'cachedContentTokenCount'),
    output: count(usage, 'candidatesTokenCount'),
    reasoning: count(usage, 'thoughtsTokenCount'),
    reasoningApart: true,
    total: count(usage, 'totalTokenCount'),
    extra: {
      input_audio_tokens: count(byModality(usage.promptTokensDetails, 'AUDIO'), 'tokenCount'),
      cached_audio_tokens: count(byModality(usage.cacheTokensDetails, 'AUDIO'), 'tokenCount'),
      output_audio_tokens: count(byModality(usage.candidatesTokensDetails, 'AUDIO'), 'tokenCount'),
      input_image_tokens: count(byModality(usage.promptTokensDetails, 'IMAGE'), 'tokenCount'),
      output_image_tokens: count(byModality(usage.candidatesTokensDetails, 'IMAGE'), 'tokenCount'),
    },
  }),
};

/** Gemini Interactions. */
const INTERACTIONS: Dialect = {
  members: ['total_input_tokens', 'total_output_tokens'],
  read: (usage) => ({
    input: count(usage, 'total_input_tokens'),
    inputApart: count(usage, 'total_tool_use_tokens'),
    cached: count(usage, 'total_cached_tokens'),
    output: count(usage, 'total_output_tokens'),
    reasoning: count(usage, 'total_thought_tokens') ?? count(usage, 'total_reasoning_tokens'),
    reasoningApart: true,
    total: count(usage, 'total_tokens'),
    extra: {
      input_audio_tokens: count(byModality(usage.input_tokens_by_modality, 'audio'), 'tokens'),
      cached_audio_tokens: count(byModality(usage.cached_tokens_by_modality, 'audio'), 'tokens'),
      output_audio_tokens: count(byModality(usage.output_tokens_by_modality, 'audio'), 'tokens'),
      input_image_tokens: count(byModality(usage.input_tokens_by_modality, 'image'), 'tokens'),
      output_image_tokens: count(byModality(usage.output_tokens_by_modality, 'image'), 'tokens'),
    },
  }),
};

/** Bedrock Converse, and Nova through InvokeModel. The input excludes what was read from and written to the cache. */
const BEDROCK: Dialect = {
  members: ['inputTokens', 'outputTokens'],
  read(usage) {
    const read = count(usage, 'cacheReadInputTokens') ?? count(usage, 'cacheReadInputTokenCount');
    const written = count(usage, 'cacheWriteInputTokens') ?? count(usage, 'cacheWriteInputTokenCount');
    const hourly = Array.isArray(usage.cacheDetails)
      ? (usage.cacheDetails as unknown[]).find((detail) => field(detail, 'ttl') === '1h')
      : undefined;
    return {
      input: count(usage, 'inputTokens'),
      inputApart: sum(read, written),
      cached: read,
      cacheWrite: written,
      output: count(usage, 'outputTokens'),
      total: count(usage, 'totalTokens'),
      extra: { cache_write_1h_tokens: count(hourly, 'inputTokens') },
    };
  },
};

/** Bedrock InvokeModel: the metrics at the end of its stream, and its headers. */
const BEDROCK_METRICS: Dialect = {
  members: ['inputTokenCount', 'outputTokenCount'],
  read(usage) {
    const read = count(usage, 'cacheReadInputTokenCount');
    const written = count(usage, 'cacheWriteInputTokenCount');
    return {
      input: count(usage, 'inputTokenCount'),
      inputApart: sum(read, written),
      cached: read,
      cacheWrite: written,
      output: count(usage, 'outputTokenCount'),
    };
  },
};

/**
 * Cohere v1 (`meta`) and v2 (`usage`). Billed tokens leave out those that Cohere adds to a prompt itself. Cached tokens are a part
 * of all tokens, and not of the billed ones.
 */
const COHERE: Dialect = {
  members: ['billed_units', 'tokens'],
  hasOtherValues: true,
  read: ({ billed_units: billed, tokens, cached_tokens: cached }) => ({
    input: count(billed, 'input_tokens') ?? count(tokens, 'input_tokens'),
    cached: count(billed, 'input_tokens') === null ? asCount(cached) : null,
    output: count(billed, 'output_tokens') ?? count(tokens, 'output_tokens'),
    extra: { search_units: count(billed, 'search_units') },
  }),
};

/** Ollama's own API, at the top of the document. */
const OLLAMA: Dialect = {
  members: ['prompt_eval_count', 'eval_count'],
  read: (usage) => ({ input: count(usage, 'prompt_eval_count'), output: count(usage, 'eval_count') }),
};

/** Titan's streams on Bedrock, in the event that ends one. */
const TITAN: Dialect = {
  members: ['totalOutputTextTokenCount'],
  read: (usage) => ({
    input: count(usage, 'inputTextTokenCount'),
    output: count(usage, 'totalOutputTextTokenCount'),
  }),
};

/** OpenAI's transcriptions that are billed by their length: `{"type":"duration","seconds":9}`. */
const DURATION: Dialect = {
  members: ['seconds'],
  hasOtherValues: true,
  read: ({ seconds }) => ({
    input: null,
    output: null,
    extra: { input_audio_seconds: wholeSeconds(seconds) },
  }),
};

/** Mistral OCR. Where pages were annotated, they may be left out of the others. */
const PAGES: Dialect = {
  members: ['pages_processed', 'pages_processed_annotation'],
  read: (usage) => ({
    input: null,
    output: null,
    extra: {
      pages: count(usage, 'pages_processed'),
      annotated_pages: count(usage, 'pages_processed_annotation'),
    },
  }),
};

/** Voyage, Jina and others: embeddings and rerank have no output, so the total is the input. */
const TOTAL_ONLY: Dialect = {
  members: ['total_tokens'],
  read: (usage, endpoint) => ({
    input: INPUT_ONLY.test(endpoint) ? count(usage, 'total_tokens') : null,
    output: null,
  }),
};

/**
 * All dialects; the first that a usage object has a member of reads it. A provider with other names needs an entry here, its
 * endpoint in usage-reader.ts, and a recorded response in test/bodies/usage.
 */
export const DIALECTS: readonly Dialect[] = [
  OPENAI_CHAT,
  INPUT_OUTPUT,
  GEMINI,
  INTERACTIONS,
  BEDROCK,
  BEDROCK_METRICS,
  COHERE,
  OLLAMA,
  TITAN,
  DURATION,
  PAGES,
  TOTAL_ONLY,
];

/** Largest value of a Postgres `int`. */
const MAX_TOKENS = 2_147_483_647;

/** A member of a JSON value; undefined if the value is not an object. No name in use is inherited. */
export function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Json)[name] : undefined;
}

/** Null for anything but a count that a Postgres `int` holds. */
export function asCount(value: unknown): number | null {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_TOKENS
    ? value
    : null;
}

/** OpenAI bills the nearest second. */
function wholeSeconds(value: unknown): number | null {
  return typeof value === 'number' ? asCount(Math.round(value)) : null;
}

function count(object: unknown, name: string): number | null {
  return asCount(field(object, name));
}

/** Null if both are. */
export function sum(a: number | null | undefined, b: number | null | undefined): number | null {
  return (a ?? b ?? null) === null ? null : (a ?? 0) + (b ?? 0);
}

function byModality(details: unknown, modality: string): unknown {
  return Array.isArray(details)
    ? (details as unknown[]).find((detail) => field(detail, 'modality') === modality)
    : undefined;
}
