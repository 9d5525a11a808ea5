import type { TokenUsage } from '../tokens/token-usage.js';
import type { LogRow } from './columns.js';

/** The columns that usageOf() reads. */
export const USAGE_COLUMNS = [
  'prompt_tokens',
  'completion_tokens',
  'cached_tokens',
  'reasoning_tokens',
] as const satisfies readonly (keyof LogRow)[];

/** A row with at least these columns. */
export type UsageRow = Pick<LogRow, (typeof USAGE_COLUMNS)[number]>;

/** The usage that a row holds, without a cost. */
export function usageOf(row: UsageRow): TokenUsage {
  return {
    promptTokens: row.prompt_tokens,
    cachedTokens: row.cached_tokens,
    cacheWriteTokens: null,
    completionTokens: row.completion_tokens,
    reasoningTokens: row.reasoning_tokens,
    extra: null,
    reportedCost: null,
  };
}
