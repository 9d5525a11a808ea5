import type { ResponseSum, ResponseUsage, TokenUsage } from './token-usage.js';

/**
 * Input tokens above which a price of the catalog changes. Responses on two sides of one are not added up; a test
 * compares it with the catalog.
 */
export const SIZES: readonly number[] = [128_000, 199_999, 200_000, 271_999, 272_000, 512_000];
/**
 * Journal records are limited in length. Nearly every connection has one model, one or two tiers, a few sizes. One that uses
 * as many models as it can must not come near: a further model would be priced as one of them.
 */
export const MAX_SUMS = 96;
/** Service tier of a sum of different ones. No price names it. */
const MIXED = 'mixed';
/** Longer names, and other characters, are no model's. */
const MODEL = /^[\w.~:@!$&'()*+,;=/-]{1,128}$/;

/** Adds up the usage of the responses on one WebSocket. */
export class ResponseSums {
  private count = 0;
  /** The model of the first response that named one, with or without usage. */
  private named: string | null = null;
  private readonly sums = new Map<string, ResponseSum>();

  add(usage: ResponseUsage): void {
    const { promptTokens, extra } = usage;
    const model = usage.model !== null && MODEL.test(usage.model) ? usage.model : undefined;
    this.named ??= model ?? null;
    // As one that was cancelled before it began.
    if (promptTokens === null && usage.completionTokens === null) return;
    this.count++;
    const { responses: _, service_tier, size: _size, quality: _quality, ...counts } = extra ?? {};
    const input = promptTokens ?? 0;
    const sum = this.sumOf(model, service_tier, input);
    sum.responses++;
    sum.shortest = Math.min(sum.shortest, input);
    sum.longest = Math.max(sum.longest, input);
    addTo(sum, {
      prompt_tokens: promptTokens,
      cached_tokens: usage.cachedTokens,
      cache_write_tokens: usage.cacheWriteTokens,
      completion_tokens: usage.completionTokens,
      reasoning_tokens: usage.reasoningTokens,
      ...counts,
    });
  }

  /** The sum of all. Of more than one response, `extra` also has the sums. The model is null if there were several. */
  get total(): ResponseUsage {
    const sums = [...this.sums.values()];
    const models = new Set(sums.flatMap(({ model }) => model ?? []));
    const all: ResponseSum = { responses: 0, shortest: 0, longest: 0 };
    for (const { responses: _r, shortest: _s, longest: _l, model: _m, service_tier: _t, ...counts } of sums)
      addTo(all, counts);
    const usage = usageOfSum(all);
    const tiers = new Set(sums.map(({ service_tier }) => service_tier));
    const [tier] = tiers.size === 1 ? tiers : [];
    const listed =
      models.size > 1 ? sums.map((sum) => ({ ...sum })) : sums.map(({ model: _, ...sum }) => sum);
    const extra = {
      ...usage.extra,
      ...(tier !== undefined && { service_tier: tier }),
      ...(this.count > 1 && { responses: listed }),
    };
    return {
      ...usage,
      model: models.size > 1 ? null : this.named,
      extra: Object.keys(extra).length === 0 ? null : extra,
    };
  }

  private sumOf(model: string | undefined, tier: string | undefined, input: number): ResponseSum {
    const key = JSON.stringify([model, tier, SIZES.filter((size) => input > size).length]);
    let sum = this.sums.get(key);
    if (sum !== undefined) return sum;
    if (this.sums.size >= MAX_SUMS) {
      const sums = [...this.sums.values()];
      sum = sums.findLast((one) => one.model === model) ?? sums.at(-1)!;
      sum.service_tier = MIXED;
      return sum;
    }
    sum = { responses: 0, shortest: input, longest: input };
    if (model !== undefined) sum.model = model;
    if (tier !== undefined) sum.service_tier = tier;
    this.sums.set(key, sum);
    return sum;
  }
}

/** The usage of all responses of a sum. */
export function usageOfSum(sum: ResponseSum): TokenUsage {
  const {
    responses: _r,
    shortest: _s,
    longest: _l,
    model: _m,
    prompt_tokens: promptTokens = null,
    cached_tokens: cachedTokens = null,
    cache_write_tokens: cacheWriteTokens = null,
    completion_tokens: completionTokens = null,
    reasoning_tokens: reasoningTokens = null,
    ...extra
  } = sum;
  return {
    promptTokens,
    cachedTokens,
    cacheWriteTokens,
    completionTokens,
    reasoningTokens,
    extra: Object.keys(extra).length === 0 ? null : extra,
    // No provider with WebSockets reports a cost.
    reportedCost: null,
  };
}

function addTo(sum: ResponseSum, more: { readonly [name: string]: number | null | undefined }): void {
  const counts = sum as unknown as Record<string, number | undefined>;
  for (const [name, count] of Object.entries(more))
    if (count !== null && count !== undefined) counts[name] = (counts[name] ?? 0) + count;
}
