import { asCount, type Counts, DIALECTS, field, type Json, sum } from './dialects.js';
import type { ExtraUsage, ResponseUsage } from './token-usage.js';

/** Service tiers without a price of their own. */
const DEFAULT_TIERS = new Set(['default', 'standard', 'on_demand', 'auto']);
const TIER = /^[a-z][a-z0-9_-]{0,31}$/;

/**
 * The usage that a usage object reports, whatever its dialect; without a model and a cost.
 *
 * @param usage as the provider sent it
 * @param tier the service tier named beside it
 * @returns null if no dialect finds a count in it, or if it has the input, and another count that is none, such as a text or
 * a negative number: the input would look like all that was billed
 */
export function normaliseUsage(usage: Json, endpoint: string, tier?: unknown): ResponseUsage | null {
  for (const dialect of DIALECTS) {
    if (!hasAny(usage, dialect.members)) continue;
    const counts = dialect.read(usage, endpoint);
    const extra = extraOf(counts, tierOf(usage, tier));
    const known = inOneMeaning(counts, extra);
    const isWhole = dialect.hasOtherValues || !dialect.members.some((name) => isWrong(usage[name]));
    // Without the input, no cost is computed: the output alone is the least that is charged.
    if (!isWhole && known.promptTokens !== null) return null;
    const found = known.promptTokens ?? known.completionTokens ?? known.cachedTokens ?? known.reasoningTokens;
    if (found !== null || hasUnits(extra)) return known;
  }
  return null;
}

function isWrong(value: unknown): boolean {
  return (value ?? null) !== null && asCount(value) === null;
}

/** Counts that are billed without any tokens. */
const UNITS = ['search_units', 'input_audio_seconds', 'pages', 'annotated_pages'] as const;

function hasUnits(extra: ExtraUsage | null): boolean {
  return extra !== null && UNITS.some((unit) => extra[unit] !== undefined);
}

function hasAny(usage: Json, members: readonly string[]): boolean {
  for (const name of members) if (usage[name] !== undefined) return true;
  return false;
}

/** All input and all output, of which the other counts are parts. */
function inOneMeaning(counts: Counts, extra: ExtraUsage | null): ResponseUsage {
  const { inputApart = null, cached = null, cacheWrite = null, reasoning = null, total = null } = counts;
  const output = allOutput(counts);
  // The total shows whether it is part of the input after all: on Bedrock, some models count it so.
  const isPart = total !== null && total === (counts.input ?? 0) + (output ?? 0);
  let input = isPart ? counts.input : sum(counts.input, inputApart);
  const parts = (cached ?? 0) + (cacheWrite ?? 0);
  // Parts that exceed the whole were counted beside it, unless the total says otherwise.
  if (!isPart && input !== null && parts > input) input += parts;
  return {
    model: null,
    promptTokens: asCount(input),
    cachedTokens: cached,
    cacheWriteTokens: cacheWrite,
    completionTokens: asCount(output),
    reasoningTokens: reasoning,
    extra,
    reportedCost: null,
  };
}

/** Output with reasoning. The provider's total shows whether its output includes reasoning; else its dialect decides. */
function allOutput(counts: Counts): number | null {
  const { input, inputApart, output, reasoning, reasoningApart = false, total } = counts;
  if (!reasoning) return output;
  const rest = (total ?? NaN) - (input ?? 0) - (inputApart ?? 0) - (output ?? 0);
  const isApart = rest === reasoning || (rest !== 0 && (reasoningApart || reasoning > (output ?? 0)));
  return isApart ? sum(output, reasoning) : output;
}

function tierOf(usage: Json, beside: unknown): unknown {
  // Anthropic's fast mode has prices of its own, whatever the tier.
  if (usage.speed === 'fast') return usage.speed;
  return beside ?? usage.service_tier ?? usage.serviceTier ?? usage.trafficType;
}

function extraOf({ extra: counts }: Counts, tier: unknown): ExtraUsage | null {
  let extra: ExtraUsage | null = null;
  for (const name in counts) {
    const value = counts[name as keyof typeof counts];
    if (value) (extra ??= {})[name as keyof typeof counts] = value;
  }
  if (tier === undefined || tier === null) return extra;
  // Bedrock: an object with the type.
  const word = field(tier, 'type') ?? tier;
  const name = typeof word === 'string' ? word.toLowerCase() : '';
  if (!DEFAULT_TIERS.has(name) && TIER.test(name)) (extra ??= {}).service_tier = name;
  return extra;
}
