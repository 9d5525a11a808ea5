import { formatDecimal, parseDecimal } from '../../src/platform/decimal.js';
import { billedTokens, CompiledPrice, COST_SCALE, type StoredPrice } from '../../src/pricing/cost.js';
import { dollars } from '../../src/request-log/column-domains.js';
import type { TokenUsage } from '../../src/bodies/usage/token-usage.js';
import { never } from '../support/never.js';

const NOON = Date.UTC(2031, 0, 1, 12);
const PRICE: StoredPrice = {
  id: 'p',
  input: '2.500000',
  cached_input: '1.250000',
  cache_write: null,
  cache_write_1h: null,
  output: '10.000000',
  per_call: null,
  extra: null,
  tiers: null,
};

function usage(change: Partial<TokenUsage>): TokenUsage {
  return {
    promptTokens: 0,
    cachedTokens: null,
    cacheWriteTokens: null,
    completionTokens: null,
    reasoningTokens: null,
    extra: null,
    reportedCost: null,
    ...change,
  };
}

function costOf(price: Partial<StoredPrice>, used: Partial<TokenUsage>, at = NOON): string | null {
  const nano = new CompiledPrice({ ...PRICE, ...price }).costOf(usage(used), at);
  return nano === null ? null : formatDecimal(nano, COST_SCALE);
}

describe('billed tokens', () => {
  never('are the parts of the input, of which no token is in two', () => {
    const used = usage({
      promptTokens: 1_000,
      cachedTokens: 600,
      cacheWriteTokens: 300,
      completionTokens: 50,
      extra: { cache_write_1h_tokens: 100 },
    });
    expect(billedTokens(used)).toEqual({
      uncached: 100,
      cached: 600,
      written: 200,
      written1h: 100,
      output: 50,
    });
  });

  it.each<[string, Partial<TokenUsage>]>([
    ['without input tokens', { promptTokens: null, completionTokens: 5 }],
    ['with more from the cache than there were', { promptTokens: 5, cachedTokens: 6 }],
    ['with more in the cache than there were', { promptTokens: 5, cachedTokens: 3, cacheWriteTokens: 3 }],
    [
      'with more of the hour than were written',
      { promptTokens: 9, cacheWriteTokens: 1, extra: { cache_write_1h_tokens: 2 } },
    ],
  ])('are unknown %s, and so is the cost', (_, used) => {
    expect(billedTokens(usage(used))).toBeNull();
    expect(costOf({}, used)).toBeNull();
  });
});

describe('the cost of a call', () => {
  never('is exact, where doubles are not', () => {
    // In doubles, 0.1 * 3 is 0.30000000000000004.
    expect(costOf({ input: '0.100000' }, { promptTokens: 3 })).toBe('0.000000300');
    expect(costOf({ input: '999999.999999' }, { promptTokens: 1_000_001 })).toBe('1000000.999999000');
    expect(costOf({}, { promptTokens: 1_234, cachedTokens: 234, completionTokens: 567 })).toBe('0.008462500');
  });

  never('is rounded once, half up', () => {
    // Pico-dollars: 500, 499, and three times 500, which is 1,500 and not three times 1,000.
    expect(costOf({ input: '0.000500' }, { promptTokens: 1 })).toBe('0.000000001');
    expect(costOf({ input: '0.000499' }, { promptTokens: 1 })).toBe('0.000000000');
    const kinds = { input: '0.000500', cached_input: '0.000500', output: '0.000500' };
    expect(costOf(kinds, { promptTokens: 2, cachedTokens: 1, completionTokens: 1 })).toBe('0.000000002');
  });

  it('is unknown where the column could not hold it', () => {
    const used = { promptTokens: 2_147_483_647 };
    expect(costOf({ input: '999999.000000' }, used)).toBeNull();
  });

  it('takes what has no price of its own from the next wider kind', () => {
    const used = {
      promptTokens: 1_000_000,
      cacheWriteTokens: 1_000_000,
      extra: { cache_write_1h_tokens: 1_000_000 },
    };
    expect(costOf({ cache_write_1h: '6', cache_write: '5' }, used)).toBe('6.000000000');
    expect(costOf({ cache_write: '5' }, used)).toBe('5.000000000');
    expect(costOf({}, used)).toBe('2.500000000');
    expect(costOf({ cached_input: null }, { promptTokens: 1_000_000, cachedTokens: 1_000_000 })).toBe(
      '2.500000000',
    );
    expect(costOf({ output: null }, { promptTokens: 0, completionTokens: 9 })).toBe('0.000000000');
  });

  it('includes calls, searches and audio', () => {
    const extra = { web_searches: '10', input_audio_tokens: '40', output_audio_tokens: '80' };
    const used = {
      promptTokens: 3_000_000,
      completionTokens: 2_000_000,
      extra: { web_searches: 3, input_audio_tokens: 1_000_000, output_audio_tokens: 1_000_000 },
    };
    // 0.01 + 3 × 0.01 + 2 × 2.5 + 40 + 10 + 80
    expect(costOf({ per_call: '0.01', extra }, used)).toBe('135.040000000');
    expect(costOf({ extra }, { ...used, completionTokens: 1 })).toBeNull();
  });

  never('has tiers by input tokens, for all tokens of the call', () => {
    const tiers = [
      { above: 200_000, input: '5' },
      { above: 500_000, input: '7', output: '20' },
    ];
    expect(costOf({ tiers }, { promptTokens: 200_000 })).toBe('0.500000000');
    expect(costOf({ tiers }, { promptTokens: 200_001 })).toBe('1.000005000');
    expect(costOf({ tiers }, { promptTokens: 600_000, completionTokens: 100_000 })).toBe('6.200000000');
  });

  it('has times of the UTC day, also around midnight', () => {
    const tiers = [{ between: ['22:30:00', '06:00:00'] as const, input: '1' }];
    const at = (time: string) =>
      costOf({ tiers }, { promptTokens: 1_000_000 }, Date.parse(`2031-01-01T${time}Z`));
    expect(at('22:29:59.999')).toBe('2.500000000');
    expect(at('22:30:00')).toBe('1.000000000');
    expect(at('00:00:00')).toBe('1.000000000');
    expect(at('05:59:59.999')).toBe('1.000000000');
    expect(at('06:00:00')).toBe('2.500000000');
  });

  never('is unknown for a service tier that the price does not name', () => {
    const used = { promptTokens: 1_000_000, extra: { service_tier: 'flex' } };
    expect(costOf({}, used)).toBeNull();
    expect(costOf({ tiers: [{ above: 0, input: '9' }] }, used)).toBeNull();
    expect(costOf({ tiers: [{ service_tier: 'batch', input: '9' }] }, used)).toBeNull();
    expect(costOf({ tiers: [{ service_tier: 'flex', input: '1.25' }] }, used)).toBe('1.250000000');
    expect(costOf({ tiers: [{ service_tier: 'flex', input: '1.25' }] }, { promptTokens: 1_000_000 })).toBe(
      '2.500000000',
    );
  });
});

describe('decimals', () => {
  never.each([
    ['0.0001425', '0.000142500'],
    ['1.425e-4', '0.000142500'],
    ['0.0000000005', '0.000000001'],
    ['0.00000000049999', '0.000000000'],
    ['12', '12.000000000'],
    ['999999999.999999999', '999999999.999999999'],
  ])('%s is %s in the column', (text, stored) => {
    expect(dollars(text)).toBe(stored);
  });

  never.each([
    '-1',
    '',
    '.5',
    '1.',
    'NaN',
    '1e99',
    '1000000000',
    '999999999.9999999995',
    ' 1',
    '0x1',
    null,
    0.1,
  ])('%p is null in the column', (value) => {
    expect(dollars(value)).toBeNull();
  });

  it('are the same before and after', () => {
    expect(formatDecimal(parseDecimal('7.5', 6)!, 6)).toBe('7.500000');
    expect(formatDecimal(5n, 9)).toBe('0.000000005');
  });
});
