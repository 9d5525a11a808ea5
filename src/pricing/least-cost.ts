import type { TokenUsage } from '../tokens/token-usage.js';
import { type CompiledPrice, MOST_NANO } from './cost.js';

/**
 * What a call has cost at least, in nano-dollars, where its exact cost may be unknown: what its tokens cost without its service
 * tier. Counts that contradict each other do not say of which kind the tokens are: they are taken for the dearest.
 *
 * @param startedAt Unix milliseconds
 */
export function leastCostOf(price: CompiledPrice, usage: TokenUsage, startedAt: number): bigint {
  const { promptTokens, completionTokens, extra } = usage;
  const exact = price.costOf(usage, startedAt);
  if (exact !== null) return exact;
  const base = price.costOf({ ...usage, extra: { ...extra, service_tier: undefined } }, startedAt);
  const nano = base ?? price.highestCostOf(promptTokens ?? 0, completionTokens ?? 0);
  return nano < MOST_NANO ? nano : MOST_NANO - 1n;
}
