import {
  calcPrice,
  extractUsage,
  findProvider,
  type ModelPrice,
  type Provider,
} from '@pydantic/genai-prices';
import type { ModelInfo, Usage } from '@pydantic/genai-prices';
import { formatDecimal } from '../../src/platform/decimal.js';
import { catalogPrices } from '../../src/pricing/catalog-prices.js';
import { CompiledPrice, COST_SCALE } from '../../src/pricing/cost.js';
import { SIZES as APART } from '../../src/bodies/usage/response-sums.js';
import type { ExtraUsage, TokenUsage } from '../../src/bodies/usage/token-usage.js';
import { catalogModels } from './catalog.js';
import { never } from '../support/never.js';

const EMPTY = {
  cachedTokens: null,
  cacheWriteTokens: null,
  completionTokens: null,
  reasoningTokens: null,
  extra: null,
  reportedCost: null,
};

/** Repeatable: xorshift32. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/** Sizes on both sides of every tier of the catalog. */
const SIZES = [
  0, 1, 999, 120_000, 127_999, 128_000, 128_001, 199_999, 200_000, 200_001, 271_999, 272_000, 272_001,
  600_000,
];

function randomUsage(below: (limit: number) => number): TokenUsage {
  const promptTokens = below(2) === 0 ? SIZES[below(SIZES.length)]! : below(400_000);
  const cachedTokens = below(promptTokens + 1);
  const cacheWriteTokens = below(promptTokens - cachedTokens + 1);
  const uncached = promptTokens - cachedTokens - cacheWriteTokens;
  const completionTokens = below(3) === 0 ? 0 : below(200_000);
  const cachedAudio = below(2) * below(cachedTokens + 1);
  const cachedImages = below(2) * below(cachedTokens - cachedAudio + 1);
  const audio = below(2) * below(uncached + 1);
  const outputAudio = below(completionTokens + 1);
  const extra: ExtraUsage = {
    cache_write_1h_tokens: below(cacheWriteTokens + 1),
    cached_audio_tokens: cachedAudio,
    input_audio_tokens: audio + cachedAudio,
    cached_image_tokens: cachedImages,
    input_image_tokens: below(uncached - audio + 1) + cachedImages,
    output_audio_tokens: outputAudio,
    output_image_tokens: below(completionTokens - outputAudio + 1),
    web_searches: below(2) * below(5),
    file_searches: below(2) * below(5),
    input_audio_seconds: below(100_000),
    pages: below(500),
    annotated_pages: below(500),
  };
  const reasoningTokens = below(completionTokens - outputAudio - extra.output_image_tokens! + 1);
  return {
    promptTokens,
    cachedTokens,
    cacheWriteTokens,
    completionTokens,
    reasoningTokens,
    extra,
    reportedCost: null,
  };
}

/** The same usage in the oracle's names. */
function oracleUsage(usage: TokenUsage): Usage {
  const { extra } = usage;
  return {
    input_tokens: usage.promptTokens!,
    cache_read_tokens: usage.cachedTokens ?? 0,
    cache_write_tokens: usage.cacheWriteTokens ?? 0,
    cache_write_1h_tokens: extra?.cache_write_1h_tokens ?? 0,
    output_tokens: usage.completionTokens ?? 0,
    output_reasoning_tokens: usage.reasoningTokens ?? 0,
    input_audio_tokens: extra?.input_audio_tokens ?? 0,
    cache_audio_read_tokens: extra?.cached_audio_tokens ?? 0,
    output_audio_tokens: extra?.output_audio_tokens ?? 0,
    input_image_tokens: extra?.input_image_tokens ?? 0,
    output_image_tokens: extra?.output_image_tokens ?? 0,
    cache_image_read_tokens: extra?.cached_image_tokens ?? 0,
    web_searches: extra?.web_searches ?? 0,
    storage_searches: extra?.file_searches ?? 0,
    audio_seconds: extra?.input_audio_seconds ?? 0,
    input_audio_seconds: extra?.input_audio_seconds ?? 0,
    // The catalog's pages include those with annotations.
    input_document_pages: (extra?.pages ?? 0) + (extra?.annotated_pages ?? 0),
    input_annotated_document_pages: extra?.annotated_pages ?? 0,
  };
}

/** Prices are kept with six places: seven prices of the catalog have more, such as 0.08333333333333334. */
const rounded = (price: number) => Number(price.toFixed(6));

function withRoundedPrices(provider: Provider, model: ModelInfo): { provider: Provider; changed: number } {
  let changed = 0;
  const round = (price: number) => {
    if (rounded(price) !== price) changed++;
    return rounded(price);
  };
  const each = (prices: ModelPrice): ModelPrice =>
    Object.fromEntries(
      Object.entries(prices).map(([key, price]) => [
        key,
        typeof price === 'number'
          ? round(price)
          : price && {
              base: round(price.base),
              tiers: price.tiers.map((tier) => ({ ...tier, price: round(tier.price) })),
            },
      ]),
    );
  const prices = Array.isArray(model.prices)
    ? model.prices.map((one) => ({ ...one, prices: each(one.prices) }))
    : each(model.prices);
  return { provider: { ...provider, models: [{ ...model, match: { equals: model.id }, prices }] }, changed };
}

/** Prices of the catalog that are not read. */
const UNREAD = ['', 'audio_hours input_text_messages_kcount'];

/** As the resolver chooses: the last that had begun. */
function costOf(catalog: string, model: ModelInfo, usage: TokenUsage, at: Date): string | null {
  const price = catalogPrices(model, catalog)
    .filter(({ effective_from }) => effective_from <= at.toISOString())
    .sort((a, b) => (a.effective_from < b.effective_from ? 1 : -1))[0]!;
  const nano = new CompiledPrice({ id: 'x', ...price }).costOf(usage, at.getTime());
  return nano === null ? null : formatDecimal(nano, COST_SCALE);
}

const TIMES = [
  '2024-06-01T12:00:00Z',
  '2025-12-24T03:59:59.999Z',
  '2026-08-17T00:29:59Z',
  '2026-10-01T08:30:00Z',
  '2027-03-01T23:59:59Z',
];

describe('the cost of a call', () => {
  it('is what the catalog computes, to a billionth of a dollar, for every model and random usages', () => {
    const below = numbers(20_260_101);
    let models = 0;
    let compared = 0;
    let changed = 0;
    for (const { provider, model } of catalogModels()) {
      if (catalogPrices(model, provider.id).length === 0) continue;
      models++;
      const oracle = withRoundedPrices(provider, model);
      changed += oracle.changed;
      for (const time of TIMES) {
        for (let i = 0; i < 3; i++) {
          const usage = randomUsage(below);
          const at = new Date(time);
          const asked = calcPrice(oracleUsage(usage), model.id, {
            provider: oracle.provider,
            timestamp: at,
          })!;
          const cost = costOf(provider.id, model, usage, at);
          const difference = Math.abs(Number(cost) - asked.total_price);
          // A double has 15 digits, so that the sum of a large call is exact to a billionth only up to some 100,000 USD.
          if (cost === null || difference > 1e-9) {
            throw new Error(
              `${provider.id} ${model.id} ${time} ${JSON.stringify(usage)}: ${cost}, not ${asked.total_price}`,
            );
          }
          compared++;
        }
      }
    }
    expect(models).toBeGreaterThan(1_400);
    expect(compared).toBe(models * TIMES.length * 3);
    expect(changed).toBeLessThan(10);
  });

  it('has no tiers by length but those that keep the responses of a WebSocket apart', () => {
    const lengths = catalogModels().flatMap(({ provider, model }) =>
      catalogPrices(model, provider.id).flatMap(
        ({ tiers }) => tiers?.flatMap(({ above }) => above ?? []) ?? [],
      ),
    );
    expect(lengths.length).toBeGreaterThan(10);
    expect([...new Set(lengths)].filter((length) => !APART.includes(length))).toEqual([]);
  });

  it('is left out for models that have a price for something that no provider reports, and none for tokens', () => {
    const without = catalogModels().filter(
      ({ provider, model }) => catalogPrices(model, provider.id).length === 0,
    );
    const units = without.flatMap(({ model }) => {
      const prices = Array.isArray(model.prices) ? model.prices.map((one) => one.prices) : [model.prices];
      return prices.flatMap((one) => Object.keys(one).sort().join(' '));
    });
    expect([...new Set(units)].sort()).toEqual(UNREAD);
  });

  never('is that of hours and pages, exactly', () => {
    const priced = (id: string, name: string, extra: ExtraUsage) => {
      const found = catalogModels().find(({ provider, model }) => provider.id === id && model.id === name)!;
      return costOf(id, found.model, { ...EMPTY, promptTokens: null, extra }, new Date(TIMES[4]!));
    };
    // 0.111 USD an hour, also of many hours and of a second.
    expect(priced('groq', 'whisper-large-v3', { input_audio_seconds: 3_600 })).toBe('0.111000000');
    expect(priced('groq', 'whisper-large-v3', { input_audio_seconds: 360_000 })).toBe('11.100000000');
    expect(priced('groq', 'whisper-large-v3', { input_audio_seconds: 1 })).toBe('0.000030833');
    // 2 USD for a thousand pages, 3 USD with annotations.
    expect(priced('mistral', 'mistral-ocr-2512', { pages: 5 })).toBe('0.010000000');
    expect(priced('mistral', 'mistral-ocr-2512', { annotated_pages: 5 })).toBe('0.015000000');
    expect(priced('mistral', 'mistral-ocr-2512', { images: 5 })).toBeNull();
  });

  never('is half for the tokens of a batch, but for those from the cache of Google', () => {
    const used = {
      ...EMPTY,
      promptTokens: 3_000_000,
      cachedTokens: 1_000_000,
      completionTokens: 1_000_000,
    };
    const batch = { ...used, extra: { service_tier: 'batch', web_searches: 3 } };
    const tierless = { ...used, extra: { web_searches: 3 } };
    const differing = catalogModels().flatMap(({ provider, model }) => {
      if (!['openai', 'anthropic', 'mistral', 'google', 'groq'].includes(provider.id)) return [];
      if (catalogPrices(model, provider.id).length === 0) return [];
      const at = new Date(TIMES[4]!);
      const [usual, cached, half] = [
        tierless,
        { ...used, promptTokens: 1_000_000, completionTokens: 0 },
        batch,
      ]
        .map((usage) => costOf(provider.id, model, usage, at))
        .map((cost) => (cost === null ? null : Number(cost)));
      if (usual == null) return [];
      const searches = usual - Number(costOf(provider.id, model, used, at));
      const kept = provider.id === 'google' ? cached! : 0;
      const expected = provider.id === 'groq' ? null : (usual - searches - kept) / 2 + searches + kept;
      const isSame = expected === null ? half === null : Math.abs(half! - expected) < 1e-8;
      return isSame ? [] : [`${provider.id} ${model.id}: ${half}, not ${expected}`];
    });
    expect(differing).toEqual([]);
  });
});

describe('usages as the catalog reads them from responses', () => {
  const usage: TokenUsage = {
    ...EMPTY,
    promptTokens: 5_000,
    cachedTokens: 3_000,
    completionTokens: 700,
    reasoningTokens: 200,
  };
  const anthropic: TokenUsage = {
    ...usage,
    cacheWriteTokens: 1_500,
    reasoningTokens: null,
    extra: { cache_write_1h_tokens: 500 },
  };

  never.each<[string, string, string, TokenUsage, object]>([
    [
      'openai',
      'gpt-4o',
      'chat',
      usage,
      {
        usage: {
          prompt_tokens: 5_000,
          prompt_tokens_details: { cached_tokens: 3_000 },
          completion_tokens: 700,
          completion_tokens_details: { reasoning_tokens: 200 },
        },
      },
    ],
    [
      'openai',
      'gpt-5',
      'responses',
      usage,
      {
        usage: {
          input_tokens: 5_000,
          input_tokens_details: { cached_tokens: 3_000 },
          output_tokens: 700,
          output_tokens_details: { reasoning_tokens: 200 },
        },
      },
    ],
    [
      'anthropic',
      'claude-sonnet-4-5',
      'default',
      anthropic,
      {
        usage: {
          input_tokens: 500,
          cache_read_input_tokens: 3_000,
          cache_creation_input_tokens: 1_500,
          cache_creation: { ephemeral_5m_input_tokens: 1_000, ephemeral_1h_input_tokens: 500 },
          output_tokens: 700,
        },
      },
    ],
    [
      'google',
      'gemini-2.5-pro',
      'default',
      usage,
      {
        modelVersion: 'gemini-2.5-pro',
        usageMetadata: {
          promptTokenCount: 5_000,
          cachedContentTokenCount: 3_000,
          candidatesTokenCount: 500,
          thoughtsTokenCount: 200,
        },
      },
    ],
  ])('cost the same: %s %s', (providerId, model, flavour, ours, response) => {
    const provider = findProvider({ providerId })!;
    const extracted = extractUsage(provider, { model, ...response }, flavour);
    const at = new Date('2026-10-01T12:00:00Z');
    const asked = calcPrice(extracted.usage, model, { providerId, timestamp: at })!;
    expect(asked.total_price).toBeGreaterThan(0);
    expect(Math.abs(Number(costOf(providerId, asked.model, ours, at)) - asked.total_price)).toBeLessThan(
      1e-9,
    );
  });
});
