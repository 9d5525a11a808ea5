import { asCount, type Counts, DIALECTS, field, type Json, sum } from './dialects.js';
import type { ExtraUsage, TokenUsage } from './token-usage.js';

/** Service tiers without a price of their own. */
const DEFAULT_TIERS = new Set(['default', 'standard', 'on_demand', 'auto']);
const TIER = /^[a-z][a-z0-9_-]{0,31}$/;

/**
 * The usage that a usage object reports, whatever its dialect.
 *
 * @param usage as the provider sent it
 * @param tier the service tier named beside it
 * @returns null if no dialect finds a count in it
 */
export function normaliseUsage(usage: Json, endpoint: string, tier?: unknown): TokenUsage | null {
  for (const dialect of DIALECTS) {
    if (!dialect.members.some((name) => Object.hasOwn(usage, name))) continue;
    const counts = dialect.read(usage, endpoint);
    const known = inOneMeaning(counts);
    const found = known.promptTokens ?? known.completionTokens ?? known.cachedTokens ?? known.reasoningTokens;
    if (found !== null || isSome(counts.extra))
      return { ...known, extra: withTier(counts.extra, tier ?? tierOf(usage)) };
  }
  return null;
}

/** All input and all output, of which the other counts are parts. */
function inOneMeaning(counts: Counts): Omit<TokenUsage, 'extra'> {
  const { inputApart = null, cached = null, cacheWrite = null, reasoning = null, total = null } = counts;
  const output = allOutput(counts);
  // The total says whether it is part of the input after all: on Bedrock, some models count it so.
  const isPart = total !== null && total === (counts.input ?? 0) + (output ?? 0);
  let input = isPart ? counts.input : sum(counts.input, inputApart);
  const parts = (cached ?? 0) + (cacheWrite ?? 0);
  // Parts that exceed the whole were counted beside it.
  if (input !== null && parts > input) input += parts;
  return {
    promptTokens: asCount(input),
    cachedTokens: cached,
    cacheWriteTokens: cacheWrite,
    completionTokens: asCount(output),
    reasoningTokens: reasoning,
    reportedCost: null,
  };
}

/** Output with reasoning. The provider's total shows whether its output includes reasoning; else its dialect decides. */
function allOutput(counts: Counts): number | null {
  const { input, inputApart, output, reasoning, reasoningApart = false, total } = counts;
  if (!reasoning) return output;
  const rest = (total ?? NaN) - (input ?? 0) - (inputApart ?? 0) - (output ?? 0);
  const isApart = rest === reasoning || reasoning > (output ?? 0) || (rest !== 0 && reasoningApart);
  return isApart ? sum(output, reasoning) : output;
}

/** Anthropic: in the usage object. Gemini: `serviceTier`; Vertex AI: `trafficType`. */
function tierOf(usage: Json): unknown {
  return usage.service_tier ?? usage.serviceTier ?? usage.trafficType;
}

function withTier(extra: ExtraUsage | undefined, tier: unknown): ExtraUsage | null {
  const kept: Record<string, unknown> = {};
  let isEmpty = true;
  for (const name in extra) {
    const value = extra[name as keyof ExtraUsage];
    if (value === undefined) continue;
    kept[name] = value;
    isEmpty = false;
  }
  // Bedrock: an object with the type.
  const word = field(tier, 'type') ?? tier;
  const name = typeof word === 'string' ? word.toLowerCase() : '';
  if (TIER.test(name) && !DEFAULT_TIERS.has(name)) {
    kept.service_tier = name;
    isEmpty = false;
  }
  return isEmpty ? null : kept;
}

function isSome(extra: ExtraUsage | undefined): boolean {
  for (const name in extra) if (extra[name as keyof ExtraUsage] !== undefined) return true;
  return false;
}
