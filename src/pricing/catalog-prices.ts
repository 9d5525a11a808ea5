import type { ConditionalPrice, ModelInfo, ModelPrice } from '@pydantic/genai-prices';
import { divideHalfUp, formatDecimal, parseDecimal } from '../platform/decimal.js';
import { PRICE_SCALE, type Prices, type Tier, UNIT_SCALE } from './cost.js';
import { type ExtraPrices, type ExtraUnit } from './costs/units.js';

/** A price of the catalog, as it is stored. */
export interface CatalogPrice extends Prices {
  /** ISO 8601. */
  effective_from: string;
  per_call: string | null;
  tiers: Tier[] | null;
}

const TOKENS = {
  input: 'input_mtok',
  cached_input: 'cache_read_mtok',
  cache_write: 'cache_write_mtok',
  cache_write_1h: 'cache_write_1h_mtok',
  output: 'output_mtok',
} as const;

const EXTRA: Partial<Record<ExtraUnit, string>> = {
  reasoning_tokens: 'output_reasoning_mtok',
  input_audio_tokens: 'input_audio_mtok',
  cached_audio_tokens: 'cache_audio_read_mtok',
  output_audio_tokens: 'output_audio_mtok',
  input_image_tokens: 'input_image_mtok',
  cached_image_tokens: 'cache_image_read_mtok',
  output_image_tokens: 'output_image_mtok',
  web_searches: 'web_searches_kcount',
  file_searches: 'storage_searches_kcount',
  pages: 'input_document_kpages',
  annotated_pages: 'input_annotated_document_kpages',
};

/** Prices for an hour. Sound that is neither named as input nor as output may be both. */
const HOURS: Partial<Record<ExtraUnit, string>> = {
  input_audio_seconds: 'input_audio_hours',
  output_audio_seconds: 'output_audio_hours',
};
const ANY_HOURS = 'audio_hours';
const SECONDS_OF_HOUR = 3_600n;
const THOUSAND = 1_000n;

/** All prices that are read; a model that also has another one is left out, unless it has one for tokens. */
const READ = new Set<string>([
  ...Object.values(EXTRA),
  ...Object.values(HOURS),
  ANY_HOURS,
  'requests_kcount',
]);

/**
 * What tokens of a batch cost, by price list, in parts of their usual price. Sources, of 25 November 2026: Anthropic's "Batch
 * processing" (all usage at 50 %), Mistral's "Batch Processing" (50 % discount), Gemini's "Optimization and inference" (50 %;
 * copies of Vertex AI's "Batch inference": the discounts for cache and batch do not stack). OpenAI's page could not be read; many
 * readers of it agree on half.
 */
const BATCH: Readonly<Record<string, Tier>> = {
  openai: { service_tier: 'batch', factor: '0.5' },
  anthropic: { service_tier: 'batch', factor: '0.5' },
  mistral: { service_tier: 'batch', factor: '0.5' },
  google: { service_tier: 'batch', factor: '0.5', cached_factor: '1' },
};

/** A price that was never said to begin. */
const ALWAYS = new Date(0).toISOString();

/**
 * The prices of a model of the catalog, one for each date from which a price applies.
 *
 * @param catalog the price list
 * @returns none if the catalog has no price for tokens, and one for something else that providers do not report, such as
 *   messages
 */
export function catalogPrices({ id, prices }: ModelInfo, catalog: string): CatalogPrice[] {
  const all: ConditionalPrice[] = Array.isArray(prices) ? prices : [{ prices }];
  const isFree = id.endsWith(':free') && all.every((one) => Object.keys(one.prices).length === 0);
  if (!isFree && !all.some((one) => isTokenPrice(one.prices)) && !all.every((one) => isRead(one.prices)))
    return [];
  const starts = all.flatMap(({ constraint }) =>
    constraint?.type === 'start_date' ? [new Date(constraint.start_date).toISOString()] : [],
  );
  const batch = BATCH[catalog];
  return [...new Set([ALWAYS, ...starts])].map((from) => {
    const price = priceFrom(all, from, isFree);
    // Half of nothing needs no tier.
    const hasTokens = price.input !== null || price.output !== null;
    return batch === undefined || !hasTokens ? price : { ...price, tiers: [...(price.tiers ?? []), batch] };
  });
}

function isTokenPrice(prices: ModelPrice): boolean {
  return prices.input_mtok !== undefined || prices.output_mtok !== undefined;
}

function isRead(prices: ModelPrice): boolean {
  const names = Object.keys(prices);
  return names.length > 0 && names.every((name) => READ.has(name));
}

/** The last entry whose condition holds is the price: the times of day after it are tiers over it. */
function priceFrom(all: readonly ConditionalPrice[], from: string, isFree: boolean): CatalogPrice {
  let at = 0;
  all.forEach(({ constraint }, i) => {
    const began = constraint?.type === 'start_date' && new Date(constraint.start_date).toISOString() <= from;
    if (constraint === undefined || began) at = i;
  });
  const base = pricesOf(all[at]!.prices, (price) => (typeof price === 'number' ? price : price.base));
  if (isFree) Object.assign(base, { input: decimal(0), output: decimal(0) });
  const tiers = longTiers(all[at]!.prices);
  for (const { constraint, prices } of all.slice(at + 1)) {
    if (constraint?.type !== 'time_of_date') continue;
    const between = [constraint.start_time.slice(0, 8), constraint.end_time.slice(0, 8)] as const;
    tiers.push(
      { between, ...pricesOf(prices, (price) => (typeof price === 'number' ? price : price.base)) },
      ...longTiers(prices).map((tier) => ({ between, ...tier })),
    );
  }
  const perCall = all[at]!.prices.requests_kcount;
  return {
    ...base,
    effective_from: from,
    // The catalog has it for a thousand requests.
    per_call: typeof perCall === 'number' ? decimal(perCall / 1_000) : null,
    tiers: tiers.length === 0 ? null : tiers,
  };
}

/** The tiers by input tokens, the lowest first. */
function longTiers(prices: ModelPrice): Tier[] {
  const starts = Object.values(prices).flatMap((price) =>
    typeof price === 'object' ? price.tiers.map(({ start }) => start) : [],
  );
  return [...new Set(starts)]
    .sort((a, b) => a - b)
    .map((above) => {
      const tier = pricesOf(prices, (price) =>
        typeof price === 'number' ? undefined : price.tiers.find(({ start }) => start === above)?.price,
      );
      const named = Object.entries(tier).filter(([, price]) => price !== null);
      return { above, ...Object.fromEntries(named) };
    });
}

type Price = NonNullable<ModelPrice[string]>;

function pricesOf(prices: ModelPrice, pick: (price: Price) => number | undefined): Prices {
  const textOf = (key: string) => {
    const price = prices[key];
    const number = price === undefined ? undefined : pick(price);
    return number === undefined ? null : decimal(number);
  };
  const extra: ExtraPrices = {};
  for (const [unit, key] of Object.entries(EXTRA) as [ExtraUnit, string][]) {
    const price = textOf(key);
    if (price !== null) extra[unit] = price;
  }
  const isEither = Object.values(HOURS).every((key) => prices[key] === undefined);
  for (const [unit, key] of Object.entries(HOURS) as [ExtraUnit, string][]) {
    const price = prices[key] ?? (isEither ? prices[ANY_HOURS] : undefined);
    const hourly = price === undefined ? undefined : pick(price);
    if (hourly !== undefined) extra[unit] = perThousandSeconds(hourly);
  }
  return {
    input: textOf(TOKENS.input),
    cached_input: textOf(TOKENS.cached_input),
    cache_write: textOf(TOKENS.cache_write),
    cache_write_1h: textOf(TOKENS.cache_write_1h),
    output: textOf(TOKENS.output),
    extra: Object.keys(extra).length === 0 ? null : extra,
  };
}

function perThousandSeconds(hourly: number): string {
  const price = parseDecimal(String(hourly), UNIT_SCALE)!;
  return formatDecimal(divideHalfUp(price * THOUSAND, SECONDS_OF_HOUR), UNIT_SCALE);
}

/** The shortest text of a number is the decimal that the catalog's author wrote; digits beyond the scale are rounded. */
function decimal(price: number): string {
  return formatDecimal(parseDecimal(String(price), PRICE_SCALE)!, PRICE_SCALE);
}
