import { usageOfSum } from '../bodies/usage/response-sums.js';
import type { ResponseSum, TokenUsage } from '../bodies/usage/token-usage.js';
import { type CompiledPrice, MAX_NANO } from './cost.js';

/**
 * What a call has cost at least, in nano-dollars, where its exact cost may be unknown: what its tokens cost without its service
 * tier and its unknown units. Counts that contradict each other do not say of which kind the tokens are: they are taken for the dearest. Of a
 * WebSocket, each kind of response is taken alone.
 *
 * @param startedAt Unix milliseconds
 */
export function leastCostOf(price: CompiledPrice, usage: TokenUsage, startedAt: number): bigint {
  const { promptTokens, completionTokens, extra } = usage;
  const exact = price.costOf(usage, startedAt);
  if (exact !== null) return exact;
  if (extra?.responses !== undefined) return leastCostOfAll(price, extra.responses, startedAt);
  const base = price.costOf({ ...usage, extra: { ...extra, service_tier: undefined } }, startedAt, true);
  const nano = base ?? price.highestCostOf(promptTokens ?? 0, completionTokens ?? 0);
  return nano < MAX_NANO ? nano : MAX_NANO - 1n;
}

function leastCostOfAll(price: CompiledPrice, sums: readonly ResponseSum[], startedAt: number): bigint {
  let all = 0n;
  for (const sum of sums) {
    const usage = usageOfSum(sum);
    const costOf = (one: ResponseSum, isLeast: boolean) =>
      price.costOf({ ...usage, extra: { responses: [one] } }, startedAt, isLeast);
    all +=
      costOf(sum, false) ??
      costOf({ ...sum, service_tier: undefined }, true) ??
      price.highestCostOf(usage.promptTokens ?? 0, usage.completionTokens ?? 0);
  }
  return all < MAX_NANO ? all : MAX_NANO - 1n;
}
