import { divideHalfUp, parseDecimal } from '../platform/decimal.js';
import { usageOfSum } from '../bodies/usage/response-sums.js';
import type { ResponseSum, TokenUsage } from '../bodies/usage/token-usage.js';
import { applies, type Condition, conditionOf } from './costs/tier-condition.js';

/** Prices are stored with six decimal places in USD per million tokens: in these units, pico-dollars per token. */
export const PRICE_SCALE = 6;
/** Costs are stored with nine decimal places: nano-dollars. */
export const COST_SCALE = 9;
const PICO_PER_NANO = 1_000n;
/** Micro-dollars per thousand units, in pico-dollars per unit. */
const PICO_PER_THOUSANDTH = 1_000n;
/** Micro-dollars in pico-dollars. */
const PICO_PER_MICRO = 1_000_000n;
/** What `numeric(18,9)` cannot hold. */
export const MAX_NANO = 10n ** 18n;

/** Units of `extra` whose price is for a thousand of them; the others are tokens. */
const COUNTED = new Set(['web_searches', 'search_units']);

/** Units with a price of their own besides the five kinds of tokens. Tokens: USD per million; else USD per thousand. */
export const EXTRA_UNITS = [
  'reasoning_tokens',
  'input_audio_tokens',
  'cached_audio_tokens',
  'output_audio_tokens',
  'input_image_tokens',
  'cached_image_tokens',
  'output_image_tokens',
  'web_searches',
  'search_units',
] as const;
export type ExtraUnit = (typeof EXTRA_UNITS)[number];
export type ExtraPrices = Partial<Record<ExtraUnit, string | null>>;

/** Decimal text in USD per million tokens. Null: these tokens cost what the next wider kind costs, see Rates. */
export interface Prices {
  input: string | null;
  cached_input: string | null;
  cache_write: string | null;
  cache_write_1h: string | null;
  output: string | null;
  extra: ExtraPrices | null;
}

/** Prices that replace those of the model for some calls. A price that is left out stays as it is. */
export interface Tier extends Partial<Prices> {
  /** Calls with more input tokens than this; the tier applies to all of their tokens. */
  above?: number;
  /** Calls that start in this part of the UTC day, `HH:MM:SS`; it may include midnight. */
  between?: readonly [from: string, to: string];
  /** Calls of this service tier. */
  service_tier?: string;
}

/** The price of a model, as stored. */
export interface StoredPrice extends Prices {
  id: string;
  /** USD. */
  per_call: string | null;
  /** Those that apply are put over the price in this order. */
  tiers: readonly Tier[] | null;
}

/** Tokens by what they cost. No token is in two of them. */
export interface BilledTokens {
  uncached: number;
  cached: number;
  /** Written to the cache for the usual time. */
  written: number;
  /** Written to the cache for an hour. */
  written1h: number;
  output: number;
}

/**
 * @returns null if the input tokens are unknown or the counts contradict each other, for example if more tokens came from
 * the cache than there were
 */
export function billedTokens(usage: TokenUsage): BilledTokens | null {
  const { promptTokens, completionTokens, extra } = usage;
  if (promptTokens === null) return null;
  const cached = usage.cachedTokens ?? 0;
  const allWritten = usage.cacheWriteTokens ?? 0;
  const written1h = extra?.cache_write_1h_tokens ?? 0;
  const uncached = promptTokens - cached - allWritten;
  const written = allWritten - written1h;
  if (uncached < 0 || written < 0) return null;
  return { uncached, cached, written, written1h, output: completionTokens ?? 0 };
}

/**
 * Pico-dollars per unit. Where a price does not name a kind of tokens, they cost what the kind they are part of costs: an
 * hour's cache write like any cache write, cache reads and writes like input. Without a price for input or output, those
 * tokens are free.
 */
interface Rates {
  uncached: bigint;
  cached: bigint;
  written: bigint;
  written1h: bigint;
  output: bigint;
  /** Null in nearly every price. */
  extra: ReadonlyMap<ExtraUnit, bigint> | null;
}

/** A price that is ready for computing: every text is parsed once. */
export class CompiledPrice {
  readonly id: string;
  private readonly perCall: bigint;
  private readonly base: Rates;
  private readonly conditions: readonly Condition[];
  /** Pico-dollars of the dearest kinds of input and output tokens, computed when they are asked for. */
  private dearest: readonly [input: bigint, output: bigint] | null = null;
  /** By the tiers that apply, one bit each. */
  private readonly tiered = new Map<number, Rates>();

  constructor(private readonly stored: StoredPrice) {
    this.id = stored.id;
    this.perCall = micro(stored.per_call) * PICO_PER_MICRO;
    this.base = ratesOf(stored);
    this.conditions = (stored.tiers ?? []).map(conditionOf);
  }

  /**
   * What a call costs, in nano-dollars; of a WebSocket, what its responses cost together, each by its own size and tier. It
   * is computed in whole pico-dollars and rounded once, half up.
   *
   * @param startedAt Unix milliseconds
   * @returns null if the usage does not determine the cost: see billedTokens; or a service tier that this price does not name
   */
  costOf(usage: TokenUsage, startedAt: number): bigint | null {
    let pico: bigint | null = 0n;
    for (const sum of usage.extra?.responses ?? [null]) {
      const one = this.picoOf(sum === null ? usage : usageOfSum(sum), startedAt, sum);
      pico = pico === null || one === null ? null : pico + one;
    }
    const nano = pico === null ? null : divideHalfUp(pico, PICO_PER_NANO);
    return nano !== null && nano < MAX_NANO ? nano : null;
  }

  /** @param sum null: it is the usage of one call */
  private picoOf(usage: TokenUsage, startedAt: number, sum: ResponseSum | null): bigint | null {
    const billed = billedTokens(usage);
    if (billed === null) return null;
    const tier = usage.extra?.service_tier ?? null;
    const rates = this.ratesFor(sum?.longest ?? usage.promptTokens ?? 0, tier, startedAt);
    // The responses of a sum are not all of one price.
    if (sum !== null && rates !== this.ratesFor(sum.shortest, tier, startedAt)) return null;
    if (rates === null) return null;
    let pico = sum === null ? this.perCall : this.perCall * BigInt(sum.responses);
    if (rates.extra !== null) {
      const extra = takeExtra(billed, usage, rates.extra);
      if (extra === null) return null;
      pico += extra;
    }
    // Most calls have two or three of the five.
    if (billed.uncached > 0) pico += BigInt(billed.uncached) * rates.uncached;
    if (billed.cached > 0) pico += BigInt(billed.cached) * rates.cached;
    if (billed.written > 0) pico += BigInt(billed.written) * rates.written;
    if (billed.written1h > 0) pico += BigInt(billed.written1h) * rates.written1h;
    if (billed.output > 0) pico += BigInt(billed.output) * rates.output;
    return pico;
  }

  /** The most that a call with so many tokens costs, of whatever kind and tier they are, in nano-dollars. Searches are left out. */
  highestCostOf(inputTokens: number, outputTokens: number): bigint {
    const [input, output] = (this.dearest ??= dearestRates(this.stored));
    const pico = this.perCall + BigInt(inputTokens) * input + BigInt(outputTokens) * output;
    return divideHalfUp(pico, PICO_PER_NANO) + 1n;
  }

  /** Whether the cost of calls of this service tier is known. */
  hasTier(name: string): boolean {
    return this.conditions.some(({ serviceTier }) => serviceTier === name);
  }

  private ratesFor(promptTokens: number, serviceTier: string | null, startedAt: number): Rates | null {
    if (this.conditions.length === 0) return serviceTier === null ? this.base : null;
    let bits = 0;
    let isNamed = serviceTier === null;
    for (let i = 0; i < this.conditions.length; i++) {
      const condition = this.conditions[i]!;
      if (!applies(condition, promptTokens, startedAt, serviceTier)) continue;
      bits |= 1 << i;
      isNamed ||= condition.serviceTier !== null;
    }
    if (!isNamed) return null;
    return bits === 0 ? this.base : this.tieredRates(bits);
  }

  private tieredRates(bits: number): Rates {
    let rates = this.tiered.get(bits);
    if (rates === undefined) {
      const applied = this.stored.tiers!.filter((_, i) => (bits & (1 << i)) !== 0);
      const extra = Object.assign({}, this.stored.extra, ...applied.map((tier) => tier.extra)) as ExtraPrices;
      rates = ratesOf({ ...Object.assign({}, this.stored, ...applied), extra } as Prices);
      this.tiered.set(bits, rates);
    }
    return rates;
  }
}

/** Each tier takes a bit of an integer. */
export const MAX_TIERS = 30;

function micro(price: string | null | undefined): bigint {
  return price == null ? 0n : (parseDecimal(price, PRICE_SCALE) ?? 0n);
}

function ratesOf(prices: Prices): Rates {
  const { input, output, extra } = prices;
  const written = prices.cache_write ?? input;
  // Where cached tokens cost what input costs, cached audio costs what audio costs, and cached images what images cost.
  const wider = prices.cached_input === null ? extra : null;
  const units = Object.entries({
    cached_audio_tokens: wider?.input_audio_tokens,
    cached_image_tokens: wider?.input_image_tokens,
    ...extra,
  }).filter(([, price]) => price != null);
  return {
    uncached: micro(input),
    cached: micro(prices.cached_input ?? input),
    written: micro(written),
    written1h: micro(prices.cache_write_1h ?? written),
    output: micro(output),
    extra:
      units.length === 0
        ? null
        : new Map(
            units.map(([unit, price]) => [
              unit as ExtraUnit,
              micro(price) * (COUNTED.has(unit) ? PICO_PER_THOUSANDTH : 1n),
            ]),
          ),
  };
}

function dearestRates(stored: StoredPrice): [input: bigint, output: bigint] {
  const inputs: bigint[] = [];
  const outputs: bigint[] = [];
  for (const tier of [{}, ...(stored.tiers ?? [])] as Tier[]) {
    const rates = ratesOf({ ...stored, ...tier, extra: { ...stored.extra, ...tier.extra } });
    inputs.push(rates.uncached, rates.cached, rates.written, rates.written1h);
    outputs.push(rates.output);
    for (const [unit, rate] of rates.extra ?? []) {
      if (COUNTED.has(unit)) continue;
      if (unit === 'reasoning_tokens' || unit.startsWith('output')) outputs.push(rate);
      else inputs.push(rate);
    }
  }
  const highest = (rates: bigint[]) => rates.reduce((a, b) => (a > b ? a : b));
  return [highest(inputs), highest(outputs)];
}

/** Units of input, and those of them that were read from the cache. */
const CACHED_PART: Partial<Record<ExtraUnit, ExtraUnit>> = {
  input_audio_tokens: 'cached_audio_tokens',
  input_image_tokens: 'cached_image_tokens',
};

/**
 * Takes the units with a price of their own out of the kinds of tokens that they are part of.
 *
 * @returns what they cost in pico-dollars; null if there are more of them than of the kind that they are part of
 */
function takeExtra(
  billed: BilledTokens,
  { extra, reasoningTokens }: TokenUsage,
  rates: ReadonlyMap<ExtraUnit, bigint>,
): bigint | null {
  const count = (unit: ExtraUnit) =>
    unit === 'reasoning_tokens' ? (reasoningTokens ?? 0) : (extra?.[unit] ?? 0);
  let pico = 0n;
  for (const [unit, rate] of rates) {
    let units = count(unit);
    const cached = CACHED_PART[unit];
    if (cached !== undefined) {
      // What came from the cache is among the cached tokens.
      units -= count(cached);
      billed.uncached -= units;
    } else if (unit === 'cached_audio_tokens' || unit === 'cached_image_tokens') billed.cached -= units;
    else if (!COUNTED.has(unit)) billed.output -= units;
    if (units < 0) return null;
    pico += BigInt(units) * rate;
  }
  return billed.uncached < 0 || billed.cached < 0 || billed.output < 0 ? null : pico;
}
