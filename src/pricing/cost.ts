import { divideHalfUp, parseDecimal } from '../platform/decimal.js';
import { usageOfSum } from '../bodies/usage/response-sums.js';
import type { ResponseSum, TokenUsage } from '../bodies/usage/token-usage.js';
import { applies, type Condition, conditionOf, type Traits } from './costs/tier-condition.js';
import {
  BOUNDED_UNITS,
  type ExtraPrices,
  type ExtraUnit,
  isCounted,
  isMeasured,
  type MostUnits,
} from './costs/units.js';

/** Prices are stored with six decimal places in USD per million tokens: in these units, pico-dollars per token. */
export const PRICE_SCALE = 6;
/** Costs are stored with nine decimal places: nano-dollars. */
export const COST_SCALE = 9;
/** Computed in attodollars (1e-18 USD), in which every price and every factor is a whole number. */
const ATTO_PER_NANO = 1_000_000_000n;
const ATTO_PER_MICRO = 1_000_000_000_000n;
/** Prices for a thousand units may have twelve decimal places: an hour of sound for 0.111 USD is 0.030833333333 a thousand seconds. */
export const UNIT_SCALE = 12;
/** The last of these places for a thousand units, for one unit. */
const ATTO_PER_UNIT_PLACE = 1_000n;
/** Decimal places of a factor: picodollars times a factor are attodollars. */
export const FACTOR_SCALE = 6;
const ONE = 10n ** BigInt(FACTOR_SCALE);
/** What `numeric(18,9)` cannot hold. */
export const MAX_NANO = 10n ** 18n;

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
  /** Images or videos of this size and quality, as the provider names them. */
  size?: string;
  quality?: string;
  /** Decimal by which the prices of tokens are multiplied, in place of prices. Those of counted units stay. */
  factor?: string;
  /** The same for tokens that were read from the cache. Absent: `factor`. */
  cached_factor?: string;
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
 * Attodollars per unit. Where a price does not name a kind of tokens, they cost what the kind they are part of costs: an
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
  /** Tokens cost nothing: how many there are need not be known. */
  isFree: boolean;
}

/** A price that is ready for computing: every text is parsed once. */
export class CompiledPrice {
  readonly id: string;
  private readonly perCall: bigint;
  private readonly base: Rates;
  private readonly conditions: readonly Condition[];
  /** Attodollars of the dearest kinds of input and output tokens, computed when they are asked for. */
  private dearest: Dearest | null = null;
  /** By the tiers that apply, one bit each. */
  private readonly tiered = new Map<number, Rates>();

  constructor(private readonly stored: StoredPrice) {
    this.id = stored.id;
    this.perCall = micro(stored.per_call) * ATTO_PER_MICRO;
    this.base = ratesOf(stored);
    this.conditions = (stored.tiers ?? []).map(conditionOf);
  }

  /**
   * What a call costs, in nano-dollars; of a WebSocket, what its responses cost together, each by its own size and tier. It
   * is computed in whole attodollars and rounded once, half up.
   *
   * @param startedAt Unix milliseconds
   * @param isLeast counted units that are unknown cost nothing
   * @returns null if the usage does not determine the cost: see billedTokens; tools that could not be counted; a service tier,
   *   or a counted unit, that this price names and the usage does not; a service tier that this price does not name
   */
  costOf(usage: TokenUsage, startedAt: number, isLeast = false): bigint | null {
    let atto: bigint | null = 0n;
    for (const sum of usage.extra?.responses ?? [null]) {
      const one = this.attoOf(sum === null ? usage : usageOfSum(sum), startedAt, sum, isLeast);
      atto = atto === null || one === null ? null : atto + one;
    }
    const nano = atto === null ? null : divideHalfUp(atto, ATTO_PER_NANO);
    return nano !== null && nano < MAX_NANO ? nano : null;
  }

  /** @param sum null: it is the usage of one call */
  private attoOf(
    usage: TokenUsage,
    startedAt: number,
    sum: ResponseSum | null,
    isLeast: boolean,
  ): bigint | null {
    const { promptTokens, extra } = usage;
    if (!isLeast && extra?.uncounted_tools !== undefined) return null;
    const rates = this.ratesFor(sum?.longest ?? promptTokens ?? 0, extra ?? NO_TRAITS, startedAt, isLeast);
    // The responses of a sum are not all of one price.
    if (sum !== null && rates !== this.ratesFor(sum.shortest, extra ?? NO_TRAITS, startedAt, isLeast))
      return null;
    if (rates === null) return null;
    const billed = billedTokens(
      promptTokens === null && rates.isFree ? { ...usage, promptTokens: 0 } : usage,
    );
    if (billed === null) return null;
    let atto = sum === null ? this.perCall : this.perCall * BigInt(sum.responses);
    if (rates.extra !== null) {
      const units = takeExtra(billed, usage, rates.extra, isLeast);
      if (units === null) return null;
      atto += units;
    }
    // Most calls have two or three of the five.
    if (billed.uncached > 0) atto += BigInt(billed.uncached) * rates.uncached;
    if (billed.cached > 0) atto += BigInt(billed.cached) * rates.cached;
    if (billed.written > 0) atto += BigInt(billed.written) * rates.written;
    if (billed.written1h > 0) atto += BigInt(billed.written1h) * rates.written1h;
    if (billed.output > 0) atto += BigInt(billed.output) * rates.output;
    return atto;
  }

  /**
   * The most that a call with so many tokens and units costs, of whatever kind and tier they are, in nano-dollars. What the
   * request does not bound is left out: tools that the provider runs, and see unboundedUnits.
   */
  highestCostOf(inputTokens: number, outputTokens: number, most: MostUnits | null = null): bigint {
    const { input, output, units } = (this.dearest ??= dearestRates(this.stored));
    let atto = this.perCall + BigInt(inputTokens) * input + BigInt(outputTokens) * output;
    if (most !== null) for (const unit of BOUNDED_UNITS) atto += BigInt(most[unit]) * (units.get(unit) ?? 0n);
    return divideHalfUp(atto, ATTO_PER_NANO) + 1n;
  }

  /** Units that decide the cost of a call and that its request does not bound. Tools are left out. */
  get unboundedUnits(): readonly ExtraUnit[] {
    return (this.dearest ??= dearestRates(this.stored)).unbounded;
  }

  /** True if a unit that the request bounds has a price. */
  get hasBoundedUnits(): boolean {
    return (this.dearest ??= dearestRates(this.stored)).hasBounded;
  }

  /** Whether the cost of calls of this service tier is known. */
  hasTier(name: string): boolean {
    return this.conditions.some(({ serviceTier }) => serviceTier === name);
  }

  /** @param isLeast see costOf() */
  private ratesFor(promptTokens: number, traits: Traits, startedAt: number, isLeast: boolean): Rates | null {
    const serviceTier = traits.service_tier ?? null;
    if (this.conditions.length === 0) return serviceTier === null ? this.base : null;
    let bits = 0;
    let isNamed = serviceTier === null;
    for (let i = 0; i < this.conditions.length; i++) {
      const condition = this.conditions[i]!;
      const isKnown = knows(condition, traits);
      if (!isKnown && !isLeast) return null;
      if (!isKnown || !applies(condition, promptTokens, startedAt, traits)) continue;
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
      const prices = { ...Object.assign({}, this.stored, ...applied), extra } as Prices;
      rates = ratesOf(
        prices,
        applied.findLast(({ factor }) => factor !== undefined),
      );
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

/** What a call without units or tiers says of itself. */
const NO_TRAITS: Traits = {};

/** Whether the size and quality are known that a condition asks for. */
function knows({ size, quality }: Condition, traits: Traits): boolean {
  return (size === null || traits.size !== undefined) && (quality === null || traits.quality !== undefined);
}

/** @param tier with the factors for tokens */
function ratesOf(prices: Prices, tier: Tier | undefined = undefined): Rates {
  const { input, output, extra } = prices;
  const factor = factorOf(tier?.factor, ONE);
  const ofCached = factorOf(tier?.cached_factor, factor);
  const written = prices.cache_write ?? input;
  // Where cached tokens cost what input costs, cached audio costs what audio costs, and cached images what images cost.
  const wider = prices.cached_input === null ? extra : null;
  const units = Object.entries({
    cached_audio_tokens: wider?.input_audio_tokens,
    cached_image_tokens: wider?.input_image_tokens,
    annotated_pages: extra?.pages,
    ...extra,
  }).filter(([, price]) => price != null);
  const rate = (unit: string, price: string) => {
    if (isCounted(unit)) return (parseDecimal(price, UNIT_SCALE) ?? 0n) * ATTO_PER_UNIT_PLACE;
    return micro(price) * (unit.startsWith('cached') ? ofCached : factor);
  };
  const rates = {
    uncached: micro(input) * factor,
    cached: micro(prices.cached_input ?? input) * ofCached,
    written: micro(written) * factor,
    written1h: micro(prices.cache_write_1h ?? written) * factor,
    output: micro(output) * factor,
  };
  const tokens = units.filter(([unit]) => !isCounted(unit));
  return {
    ...rates,
    extra:
      units.length === 0
        ? null
        : new Map(units.map(([unit, price]) => [unit as ExtraUnit, rate(unit, price!)])),
    isFree: tokens.length === 0 && Object.values(rates).every((one) => one === 0n),
  };
}

function factorOf(factor: string | undefined, otherwise: bigint): bigint {
  return factor === undefined ? otherwise : (parseDecimal(factor, FACTOR_SCALE) ?? otherwise);
}

/** Attodollars of the dearest kinds of input and output tokens, and of each counted unit. */
interface Dearest {
  readonly input: bigint;
  readonly output: bigint;
  readonly units: ReadonlyMap<ExtraUnit, bigint>;
  /** See unboundedUnits. */
  readonly unbounded: readonly ExtraUnit[];
  readonly hasBounded: boolean;
}

function dearestRates(stored: StoredPrice): Dearest {
  const inputs: bigint[] = [];
  const outputs: bigint[] = [];
  const units = new Map<ExtraUnit, bigint>();
  let most = ONE;
  for (const tier of [{}, ...(stored.tiers ?? [])] as Tier[]) {
    const rates = ratesOf({ ...stored, ...tier, extra: { ...stored.extra, ...tier.extra } });
    inputs.push(rates.uncached, rates.cached, rates.written, rates.written1h);
    outputs.push(rates.output);
    for (const [unit, rate] of rates.extra ?? []) {
      if (isCounted(unit)) units.set(unit, highest([rate, units.get(unit) ?? 0n]));
      else if (unit === 'reasoning_tokens' || unit.startsWith('output')) outputs.push(rate);
      else inputs.push(rate);
    }
    most = highest([most, factorOf(tier.factor, ONE), factorOf(tier.cached_factor, ONE)]);
  }
  // A tier with a factor may apply together with the one that has the dearest prices.
  return {
    input: (highest(inputs) * most) / ONE,
    output: (highest(outputs) * most) / ONE,
    units,
    unbounded: [...units.keys()].filter((unit) => isMeasured(unit) && !isBounded(unit)),
    hasBounded: [...units.keys()].some(isBounded),
  };
}

function isBounded(unit: ExtraUnit): boolean {
  return BOUNDED_UNITS.some((name) => name === unit);
}

function highest(rates: readonly bigint[]): bigint {
  return rates.reduce((a, b) => (a > b ? a : b));
}

/** Units of input, and those of them that were read from the cache. */
const CACHED_PART: Partial<Record<ExtraUnit, ExtraUnit>> = {
  input_audio_tokens: 'cached_audio_tokens',
  input_image_tokens: 'cached_image_tokens',
};

/**
 * Takes the units with a price of their own out of the kinds of tokens that they are part of.
 *
 * @param isLeast units that are unknown cost nothing
 * @returns what they cost in attodollars; null if there are more of them than of the kind that they are part of, or if it is
 *   not known how many there are
 */
function takeExtra(
  billed: BilledTokens,
  { extra, reasoningTokens }: TokenUsage,
  rates: ReadonlyMap<ExtraUnit, bigint>,
  isLeast: boolean,
): bigint | null {
  const count = (unit: ExtraUnit) =>
    unit === 'reasoning_tokens' ? (reasoningTokens ?? 0) : (extra?.[unit] ?? 0);
  let atto = 0n;
  for (const [unit, rate] of rates) {
    if (!isLeast && isUnknown(unit, extra)) return null;
    let units = count(unit);
    const cached = CACHED_PART[unit];
    if (cached !== undefined) {
      // What came from the cache is among the cached tokens.
      units -= count(cached);
      billed.uncached -= units;
    } else if (unit === 'cached_audio_tokens' || unit === 'cached_image_tokens') billed.cached -= units;
    else if (!isCounted(unit)) billed.output -= units;
    if (units < 0) return null;
    atto += BigInt(units) * rate;
  }
  return billed.uncached < 0 || billed.cached < 0 || billed.output < 0 ? null : atto;
}

/** Whether it is not known how many of these units a call had. */
function isUnknown(unit: ExtraUnit, extra: TokenUsage['extra']): boolean {
  if (unit === 'reasoning_tokens' || !isMeasured(unit)) return false;
  // A document has pages of one kind or the other, or of both.
  const isPages = unit === 'pages' || unit === 'annotated_pages';
  return isPages ? (extra?.pages ?? extra?.annotated_pages) === undefined : extra?.[unit] === undefined;
}
