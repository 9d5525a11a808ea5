import type { ProviderError } from './provider-error.js';

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

/** Counts with a price of their own. One that would be 0 is left out. Token counts are part of the counts in TokenUsage. */
export interface ExtraCounts {
  /** Of the tokens written to the cache, those that it keeps for an hour. */
  cache_write_1h_tokens?: number;
  input_audio_tokens?: number;
  cached_audio_tokens?: number;
  output_audio_tokens?: number;
  input_image_tokens?: number;
  cached_image_tokens?: number;
  output_image_tokens?: number;
  /** Web searches that the provider ran. */
  web_searches?: number;
  /** Cohere's unit for rerank. */
  search_units?: number;
  /** Searches in files that the provider ran. */
  file_searches?: number;
  /** Containers in which the provider ran code, each counted once. */
  code_sessions?: number;
  input_audio_seconds?: number;
  output_audio_seconds?: number;
  /** Characters of the text that was made speech. */
  input_characters?: number;
  /** Pages of documents that were read. */
  pages?: number;
  /** Pages that were annotated. */
  annotated_pages?: number;
  /** Images that were made. */
  images?: number;
  video_seconds?: number;
  /** 1 if the provider may have run more tools than were counted. */
  uncounted_tools?: number;
}

/**
 * Responses of one WebSocket that are priced alike, added up: those of one model and one service tier, whose input is about
 * as long. A count that was not reported is left out.
 */
export interface ResponseSum extends ExtraCounts {
  /** How many responses these are. */
  responses: number;
  /** Input tokens of the shortest and the longest of them. */
  shortest: number;
  longest: number;
  /** Only if the responses of the WebSocket named several models. */
  model?: string;
  service_tier?: string;
  prompt_tokens?: number;
  cached_tokens?: number;
  cache_write_tokens?: number;
  completion_tokens?: number;
  reasoning_tokens?: number;
}

/** What else decides the cost, as stored in `request_log.extra_usage`. */
export interface ExtraUsage extends ExtraCounts {
  /** Service tier other than the default one: `batch`, `flex`, `priority` and others. */
  service_tier?: string;
  /** Of images and videos, as the provider names it: `1024x1024`. */
  size?: string;
  /** Of images: `standard`, `hd`, `low`, `medium`, `high`. */
  quality?: string;
  /** Of a WebSocket with several responses: what each kind of them used. The other counts are their sums. */
  responses?: readonly ResponseSum[];
}

/** What a response reports. */
export interface ResponseUsage extends TokenUsage {
  /** The model named in the response. */
  model: string | null;
  /** The error that the response reports; absent if it reports none. */
  error?: ProviderError;
  /**
   * What says that this is all usage of the response: an `event` or the end of the document that was read, or the clean `end`
   * of the stream, if it has one. Absent: nothing does.
   */
  closing?: 'event' | 'end';
  /**
   * The job that the response describes; absent if it describes none.
   *
   * @internal
   */
  job?: SeenJob;
}

/** What a provider goes on working on after it has responded. */
export type JobKind = 'batch' | 'response' | 'video';

/** A job as a response of its provider describes it. */
export interface SeenJob {
  kind: JobKind;
  id: string;
  /** Where it is below the provider's URL. */
  path: string;
  /** The response is that of the call which created it. */
  isNew: boolean;
  isEnded: boolean;
  /** It ended without anything that is billed. */
  isFree: boolean;
  /** What it used, once it has ended; null: not in this response. */
  usage: ResponseUsage | null;
  /** Where the file of its results is, below the provider's URL, and how many there are at least; null: there is none. */
  results: { path: string; count: number } | null;
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
