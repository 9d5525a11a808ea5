/**
 * The usage of one call as its provider reports it, in one meaning for all providers. A count that the provider does not
 * report is null.
 */
export interface TokenUsage {
  /** All input tokens, including those read from and written to the provider's cache. */
  promptTokens: number | null;
  /** Of these, read from the cache. */
  cachedTokens: number | null;
  /** Of these, written to the cache. */
  cacheWriteTokens: number | null;
  /** All output tokens, including reasoning. */
  completionTokens: number | null;
  /** Of these, reasoning. */
  reasoningTokens: number | null;
  /** What else has a price; null for nearly every call. */
  extra: ExtraUsage | null;
  /** Cost in USD that the provider reports, as an exact decimal such as `0.00014`. */
  reportedCost: string | null;
}

/**
 * Usage with a price of its own, as stored in `request_log.extra_usage`. A member that would be 0 is left out. Token counts
 * are part of the counts in TokenUsage.
 */
export interface ExtraUsage {
  /** Of the tokens written to the cache, those that it keeps for an hour. */
  cache_write_1h_tokens?: number;
  input_audio_tokens?: number;
  cached_audio_tokens?: number;
  output_audio_tokens?: number;
  input_image_tokens?: number;
  output_image_tokens?: number;
  /** Web searches that the provider ran. */
  web_searches?: number;
  /** Cohere's unit for rerank. */
  search_units?: number;
  /** Service tier other than the default one: `batch`, `flex`, `priority` and others. */
  service_tier?: string;
}

/** What a response reports. */
export interface ResponseUsage extends TokenUsage {
  /** The model named in the response. */
  model: string | null;
}

export const NO_USAGE: Readonly<ResponseUsage> = Object.freeze({
  model: null,
  promptTokens: null,
  cachedTokens: null,
  cacheWriteTokens: null,
  completionTokens: null,
  reasoningTokens: null,
  extra: null,
  reportedCost: null,
});
