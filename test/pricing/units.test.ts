import { formatDecimal, parseDecimal } from '../../src/platform/decimal.js';
import { CompiledPrice, COST_SCALE, type StoredPrice, type Tier } from '../../src/pricing/cost.js';
import { partsOf, joinParts } from '../../src/pricing/costs/price-parts.js';
import { leastCostOf } from '../../src/pricing/least-cost.js';
import type { TokenUsage } from '../../src/bodies/usage/token-usage.js';
import { never } from '../support/never.js';

const NOON = Date.UTC(2031, 0, 1, 12);
const NO_PRICE: StoredPrice = {
  id: 'p',
  input: null,
  cached_input: null,
  cache_write: null,
  cache_write_1h: null,
  output: null,
  per_call: null,
  extra: null,
  tiers: null,
};
const TOKENS = { input: '2', cached_input: '1', output: '10' };

function usage(change: Partial<TokenUsage>): TokenUsage {
  return {
    promptTokens: null,
    cachedTokens: null,
    cacheWriteTokens: null,
    completionTokens: null,
    reasoningTokens: null,
    extra: null,
    reportedCost: null,
    ...change,
  };
}

function costOf(price: Partial<StoredPrice>, used: Partial<TokenUsage>): string | null {
  const nano = new CompiledPrice({ ...NO_PRICE, ...price }).costOf(usage(used), NOON);
  return nano === null ? null : formatDecimal(nano, COST_SCALE);
}

function leastOf(price: Partial<StoredPrice>, used: Partial<TokenUsage>): string {
  return formatDecimal(
    leastCostOf(new CompiledPrice({ ...NO_PRICE, ...price }), usage(used), NOON),
    COST_SCALE,
  );
}

describe('a price for units only', () => {
  never('needs no tokens', () => {
    expect(costOf({ extra: { images: '40' } }, { extra: { images: 3 } })).toBe('0.120000000');
    expect(costOf({ extra: { images: '40' }, per_call: '1' }, { extra: { images: 3 } })).toBe('1.120000000');
    expect(costOf({ extra: { images: '40' } }, { promptTokens: 9, extra: { images: 3 } })).toBe(
      '0.120000000',
    );
    expect(costOf({ extra: { input_characters: '0.000015' } }, { extra: { input_characters: 1 } })).toBe(
      '0.000000015',
    );
  });

  it('with a price for tokens beside it needs their number too', () => {
    expect(costOf({ input: '2', extra: { images: '40' } }, { extra: { images: 3 } })).toBeNull();
    expect(
      costOf({ input: '2', extra: { images: '40' } }, { promptTokens: 1_000_000, extra: { images: 3 } }),
    ).toBe('2.120000000');
  });

  it.each([
    'input_audio_seconds',
    'output_audio_seconds',
    'input_characters',
    'pages',
    'annotated_pages',
    'images',
    'video_seconds',
  ] as const)('does not know the cost of a call without %s', (unit) => {
    expect(costOf({ extra: { [unit]: '40' } }, { promptTokens: 9, extra: null })).toBeNull();
    expect(costOf({ extra: { [unit]: '40' } }, { promptTokens: 9, extra: { [unit]: 1_000 } })).toBe(
      '40.000000000',
    );
    expect(leastOf({ per_call: '1', extra: { [unit]: '40' } }, { promptTokens: 9 })).toBe('1.000000000');
  });

  it('takes pages of one kind as none of the other', () => {
    const extra = { pages: '1', annotated_pages: '3' };
    expect(costOf({ extra }, { extra: { pages: 1_000 } })).toBe('1.000000000');
    expect(costOf({ extra }, { extra: { annotated_pages: 1_000 } })).toBe('3.000000000');
    expect(costOf({ extra }, { extra: { pages: 1_000, annotated_pages: 1_000 } })).toBe('4.000000000');
    expect(costOf({ extra: { pages: '1' } }, { extra: { annotated_pages: 1_000 } })).toBe('1.000000000');
  });
});

describe('tools that a provider runs', () => {
  const price = { ...TOKENS, extra: { web_searches: '10', file_searches: '2.5', code_sessions: '30' } };
  const used = { promptTokens: 1_000_000, completionTokens: 0 };

  it('cost nothing if none was run', () => {
    expect(costOf(price, used)).toBe('2.000000000');
  });

  it('cost what each of them costs', () => {
    const extra = { web_searches: 1, file_searches: 2, code_sessions: 3 };
    expect(costOf(price, { ...used, extra })).toBe('2.105000000');
  });

  never('make the cost unknown if they were not counted, whatever the price names', () => {
    const extra = { uncounted_tools: 1, web_searches: 1 };
    expect(costOf(price, { ...used, extra })).toBeNull();
    expect(leastOf(price, { ...used, extra })).toBe('2.010000000');
    expect(costOf(TOKENS, { ...used, extra })).toBeNull();
    expect(leastOf(TOKENS, { ...used, extra })).toBe('2.000000000');
  });
});

describe('tiers by size and quality', () => {
  const tiers: Tier[] = [
    { size: '1024x1536', extra: { images: '63' } },
    { size: '1024x1536', quality: 'high', extra: { images: '250' } },
  ];
  const price = { extra: { images: '42' }, tiers };

  it.each([
    ['1024x1024', 'high', '0.084000000'],
    ['1024x1536', 'low', '0.126000000'],
    ['1024x1536', 'high', '0.500000000'],
  ])('%s %s', (size, quality, cost) => {
    expect(costOf(price, { extra: { images: 2, size, quality } })).toBe(cost);
  });

  it('do not price an image of which they are not known', () => {
    expect(costOf(price, { extra: { images: 2, quality: 'high' } })).toBeNull();
    expect(costOf(price, { extra: { images: 2, size: '1024x1024' } })).toBeNull();
    expect(leastOf(price, { extra: { images: 2, quality: 'high' } })).toBe('0.084000000');
    expect(costOf({ ...price, tiers: null }, { extra: { images: 2 } })).toBe('0.084000000');
  });
});

describe('a factor', () => {
  const used = { promptTokens: 2_000_000, cachedTokens: 1_000_000, completionTokens: 1_000_000 };
  const batch = (change: object) => ({
    ...used,
    extra: { service_tier: 'batch', ...change },
  });

  never('applies to tokens, never to counted units or to calls', () => {
    const price = { ...TOKENS, per_call: '5', extra: { web_searches: '10', images: '40' } };
    const tiers = [{ service_tier: 'batch', factor: '0.5' }];
    const extra = { web_searches: 100, images: 1_000 };
    expect(costOf({ ...price, tiers }, { ...used, extra })).toBe('59.000000000');
    // 13 × 0.5 + 5 + 1 + 40
    expect(costOf({ ...price, tiers }, batch(extra))).toBe('52.500000000');
  });

  it('may differ for tokens from the cache', () => {
    const tiers = [{ service_tier: 'batch', factor: '0.5', cached_factor: '1' }];
    expect(costOf({ ...TOKENS, tiers }, batch({}))).toBe('7.000000000');
    const extra = { cached_audio_tokens: '4', input_audio_tokens: '6' };
    const audio = { cached_audio_tokens: 1_000_000, input_audio_tokens: 2_000_000 };
    expect(costOf({ ...TOKENS, tiers, extra }, batch(audio))).toBe('12.000000000');
  });

  it('applies to the prices of other tiers, whatever their order', () => {
    const long = { above: 1_000_000, input: '4', cached_input: '2', output: '20' };
    const half = { service_tier: 'batch', factor: '0.5' };
    expect(costOf({ ...TOKENS, tiers: [long, half] }, batch({}))).toBe('13.000000000');
    expect(costOf({ ...TOKENS, tiers: [half, long] }, batch({}))).toBe('13.000000000');
  });

  never('is exact', () => {
    // 1 token of 0.001 pico-dollars times 0.5 is no whole pico-dollar; two thousand of them are one nano-dollar.
    const tiers = [{ service_tier: 'batch', factor: '0.5' }];
    const price = { input: '0.000001', tiers };
    const extra = { service_tier: 'batch' };
    expect(costOf(price, { promptTokens: 2_000, extra })).toBe('0.000000001');
    expect(costOf(price, { promptTokens: 1_999, extra })).toBe('0.000000001');
    expect(costOf(price, { promptTokens: 999, extra })).toBe('0.000000000');
    const thirds = [{ service_tier: 'batch', factor: '0.333333' }];
    expect(costOf({ input: '3', tiers: thirds }, { promptTokens: 1_000_000, extra })).toBe('0.999999000');
  });
});

describe('the most that a call can cost', () => {
  never('includes what its request bounds, at the dearest price', () => {
    const tiers: Tier[] = [
      { size: 'large', extra: { images: '100' } },
      { service_tier: 'priority', factor: '2' },
      { above: 10, input: '3', output: '30' },
    ];
    const price = new CompiledPrice({
      ...NO_PRICE,
      ...TOKENS,
      extra: { images: '40', input_characters: '15' },
      tiers,
    });
    const nano = (usd: string) => parseDecimal(usd, COST_SCALE)! + 1n;
    expect(price.highestCostOf(1_000_000, 1_000_000)).toBe(nano('66'));
    const most = { images: 1_000, input_characters: 1_000 };
    expect(price.highestCostOf(0, 0, most)).toBe(nano('115'));
    expect(price.unboundedUnits).toEqual([]);
    expect(price.hasBoundedUnits).toBe(true);
  });

  it('is not known of units that the request does not bound', () => {
    const extra = { pages: '1', input_audio_seconds: '2', web_searches: '10', images: '3' };
    const { unboundedUnits } = new CompiledPrice({ ...NO_PRICE, extra });
    expect(unboundedUnits).toEqual(['annotated_pages', 'pages', 'input_audio_seconds']);
  });
});

it('a price is divided so that older versions read only what they compute rightly', () => {
  const old: Tier = { service_tier: 'flex', input: '1', extra: { web_searches: '5' } };
  const rest: Tier[] = [
    { service_tier: 'batch', factor: '0.5' },
    { size: '1024x1024', extra: { web_searches: '1' } },
    { above: 5, extra: { images: '1' } },
  ];
  const parts = partsOf({ web_searches: '10', images: '40' }, [rest[0]!, old, rest[1]!, rest[2]!]);
  expect(parts).toEqual({
    extra: { web_searches: '10' },
    tiers: [old],
    units: { images: '40' },
    unit_tiers: rest,
  });
  expect(joinParts(parts)).toEqual({ extra: { web_searches: '10', images: '40' }, tiers: [old, ...rest] });
  expect(partsOf(null, null)).toEqual({ extra: null, tiers: null, units: null, unit_tiers: null });
  expect(joinParts(partsOf(null, [old]))).toEqual({ extra: null, tiers: [old] });
});
