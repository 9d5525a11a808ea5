import type { TokenUsage } from '../../bodies/usage/token-usage.js';
import { leastCostOf } from '../least-cost.js';
import { type DatedPrice, type ModelPrices, priceAt } from '../price-resolver.js';

/** What a call costs. */
export interface UsageCost {
  /** Nano-dollars; null: not known. */
  nano: bigint | null;
  /** The least that may be charged, in nano-dollars: `nano`, or see leastCostOf(). */
  charge: bigint;
  /** Of a WebSocket that used several models, the price of the last one. */
  price: DatedPrice | null;
}

/** The models by whose prices a call is priced: its own, or those that the responses of its WebSocket named. */
export function modelsOf(model: string | null, { extra }: TokenUsage): string[] {
  if (model !== null) return [model];
  return [...new Set(extra?.responses?.flatMap((sum) => sum.model ?? []) ?? [])];
}

/**
 * @param model of the call; null: it has none, or the responses of its WebSocket named several
 * @param pricesOf the prices of a model; undefined if they are not in memory: it counts as one without a price
 * @param startedAt Unix milliseconds
 */
export function costOfUsage(
  model: string | null,
  usage: TokenUsage,
  pricesOf: (model: string) => ModelPrices | undefined,
  startedAt: number,
): UsageCost {
  if (model !== null) return costBy(priceAt(pricesOf(model) ?? [], startedAt), usage, startedAt);
  const responses = usage.extra?.responses ?? [];
  const isNamed = responses.length > 0 && responses.every((sum) => sum.model !== undefined);
  const all: UsageCost = { nano: isNamed ? 0n : null, charge: 0n, price: null };
  for (const name of modelsOf(null, usage)) {
    const used = { ...usage, extra: { responses: responses.filter((sum) => sum.model === name) } };
    const { nano, charge, price } = costBy(priceAt(pricesOf(name) ?? [], startedAt), used, startedAt);
    all.nano = all.nano === null || nano === null ? null : all.nano + nano;
    all.charge += charge;
    all.price = price ?? all.price;
  }
  return all;
}

function costBy(price: DatedPrice | null, usage: TokenUsage, startedAt: number): UsageCost {
  if (price === null) return { nano: null, charge: 0n, price };
  const nano = price.price.costOf(usage, startedAt);
  return { nano, charge: nano ?? leastCostOf(price.price, usage, startedAt), price };
}
