import type { TokenUsage } from '../../bodies/usage/token-usage.js';
import type { CompiledPrice } from '../cost.js';

/** The longest output of the models that there are: what a call can have at most if its request does not limit it. */
export const MAX_OUTPUT_TOKENS = 131_072;

/** Units of tools that the provider runs. How many more of them a call used is not known. */
const TOOLS = ['web_searches', 'file_searches', 'code_sessions', 'search_units', 'uncounted_tools'] as const;

/** Between what a call costs, in nano-dollars. */
export interface CostBounds {
  low: bigint;
  /** Null: nothing bounds it. */
  high: bigint | null;
}

/**
 * Between what a call costs whose usage was not read to the end.
 *
 * @param usage what was reported so far
 * @param limits the most input tokens that its request can have, and the most output that it allows; null: not known
 * @param startedAt Unix milliseconds
 */
export function costBounds(
  price: CompiledPrice,
  usage: TokenUsage,
  limits: { input: number | null; output: number | null },
  startedAt: number,
): CostBounds {
  const { promptTokens, completionTokens, extra } = usage;
  const isReported = promptTokens !== null || completionTokens !== null || extra !== null;
  const known = { ...usage, promptTokens: promptTokens ?? 0 };
  const low = isReported ? (price.costOf(known, startedAt, true) ?? 0n) : 0n;
  const input = promptTokens ?? limits.input;
  const tier = extra?.service_tier;
  const isUnbounded =
    input === null ||
    price.unboundedUnits.length > 0 ||
    price.hasBoundedUnits ||
    (tier !== undefined && !price.hasTier(tier)) ||
    TOOLS.some((name) => (extra?.[name] ?? 0) > 0);
  if (isUnbounded) return { low, high: null };
  const output = Math.max(limits.output ?? MAX_OUTPUT_TOKENS, completionTokens ?? 0);
  const high = price.highestCostOf(input, output);
  return { low, high: high < low ? low : high };
}
