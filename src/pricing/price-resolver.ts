import { Injectable, Logger } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { ChangeFeed } from '../database/change-feed.js';
import { LookupPool } from '../database/lookup-pool.js';
import { describeError } from '../errors/describe-error.js';
import { ProvidersService } from '../providers/providers.service.js';
import { OutageLog } from '../request-log/writer/outage-log.js';
import { CatalogService } from './catalog.service.js';
import { CompiledPrice } from './cost.js';
import { findPrices, isOutdated, type PricedModel, type PriceRow, storeCatalogPrices } from './price-rows.js';

const MAX_MODELS = 10_000;
/** While the catalog is unavailable, a model without a price of its own is looked up again after this time. */
const RETRY_MS = 60_000;

/** Prices that change more often than they can be read are read at the next call. */
const MAX_ATTEMPTS = 10;

/** A price, from when it applies (Unix ms). */
export interface DatedPrice {
  from: number;
  price: CompiledPrice;
  row: PriceRow;
}

/** The prices of a model, the first that has begun is the one; empty: it has none. */
export type ModelPrices = readonly DatedPrice[];

/**
 * Finds the price of a model. Custom prices come before the catalog, those for the provider itself before those for its
 * price list, then the longest match, then the one in the case of the call, then the latest that has begun. Results, also
 * empty ones, are cached until a price changes.
 */
@Injectable()
export class PriceResolver {
  private readonly outage = new OutageLog(new Logger('Prices'));
  private readonly cache = new LRUCache<string, ModelPrices>({ max: MAX_MODELS });
  private readonly loading = new Map<string, Promise<void>>();
  /** Increases when a price changes: what was read before is not kept. */
  private age = 0;
  private readonly listeners: (() => void)[] = [];

  constructor(
    private readonly pool: LookupPool,
    private readonly providers: ProvidersService,
    private readonly catalog: CatalogService,
    feed: ChangeFeed,
  ) {
    feed.subscribe('prices', {
      onChange: null,
      compare: () => {
        this.forget();
        return Promise.resolve();
      },
    });
  }

  /** Called whenever prices have changed. */
  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  /** Clears the cached prices: one has changed. */
  forget(): void {
    this.age++;
    this.cache.clear();
    this.loading.clear();
    for (const listener of this.listeners) listener();
  }

  /** @returns undefined if the model must be loaded first */
  known(provider: string, model: string): ModelPrices | undefined {
    return this.cache.get(keyOf(provider, this.providers.catalogOf(provider), model));
  }

  /** Loads the prices of these models, unless they are known. Never rejects: what could not be read stays unknown. */
  async load(models: Iterable<{ provider: string; model: string }>): Promise<void> {
    const waiting = new Set<Promise<void>>();
    const missing = new Map<string, PricedModel>();
    for (const { provider, model } of models) {
      const catalog = this.providers.catalogOf(provider);
      const key = keyOf(provider, catalog, model);
      const loading = this.loading.get(key);
      if (loading !== undefined) waiting.add(loading);
      else if (!this.cache.has(key)) missing.set(key, { provider, catalog, model });
    }
    if (missing.size > 0) waiting.add(this.start(missing));
    await Promise.all(waiting);
  }

  /** The price of a model at a time, loaded if need be; null: it has none. */
  async resolve(provider: string, model: string, at: number): Promise<DatedPrice | null> {
    await this.load([{ provider, model }]);
    return priceAt(this.known(provider, model) ?? [], at);
  }

  /** Those of the models that have no price at any time. One whose prices could not be read is among them. */
  async withoutPrice<T extends { provider: string; model: string }>(models: readonly T[]): Promise<T[]> {
    await this.load(models);
    return models.filter(({ provider, model }) => (this.known(provider, model) ?? []).length === 0);
  }

  private start(missing: ReadonlyMap<string, PricedModel>): Promise<void> {
    const work = this.read(missing).catch((error: unknown) => {
      this.outage.report('Prices cannot be read right now', describeError(error));
    });
    const done = work.finally(() => {
      for (const key of missing.keys()) if (this.loading.get(key) === done) this.loading.delete(key);
    });
    for (const key of missing.keys()) this.loading.set(key, done);
    return done;
  }

  /** Reads prices, again if one changes meanwhile. */
  private async read(missing: ReadonlyMap<string, PricedModel>): Promise<void> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) if (await this.readOnce(missing)) return;
  }

  /** @returns false if a price has changed since */
  private async readOnce(missing: ReadonlyMap<string, PricedModel>): Promise<boolean> {
    const { age } = this;
    const models = [...missing.values()];
    let found = await findPrices(this.pool, models);
    const asked = models.filter(
      ({ catalog }, i) =>
        catalog !== null &&
        (found[i]!.every(({ source }) => source === 'custom') ||
          found[i]!.some((row) => isOutdated(row, this.catalog.version))),
    );
    const results = await Promise.allSettled(asked.map((model) => this.askCatalog(model)));
    const failed = new Set(asked.filter((_, i) => results[i]!.status === 'rejected'));
    if (results.some((result) => result.status === 'fulfilled' && result.value))
      found = await findPrices(this.pool, models);
    if (age !== this.age) return false;
    let at = 0;
    for (const [key, model] of missing) {
      const prices = inOrder(found[at++]!, model);
      this.cache.set(key, prices, failed.has(model) ? { ttl: RETRY_MS } : {});
    }
    return true;
  }

  /** Stores what the catalog has of this model. @returns whether it has any */
  private async askCatalog(called: PricedModel): Promise<boolean> {
    const prices = await this.catalog.resolve(called.catalog!, called.model);
    if (prices.length === 0) return false;
    await storeCatalogPrices(this.pool, called, prices, this.catalog.version);
    return true;
  }
}

function keyOf(provider: string, catalog: string | null, model: string): string {
  return `${provider}\n${catalog ?? ''}\n${model}`;
}

/** @param at Unix milliseconds */
export function priceAt(prices: ModelPrices, at: number): DatedPrice | null {
  for (const dated of prices) if (dated.from <= at) return dated;
  return null;
}

function inOrder(rows: readonly PriceRow[], { provider, model }: PricedModel): ModelPrices {
  const rank = ({ source, catalog }: PriceRow) => (source === 'catalog' ? 2 : catalog === provider ? 0 : 1);
  const name = model.toLowerCase();
  // An exact name is longer than any pattern that matches it.
  const length = (row: PriceRow) => (row.model.toLowerCase() === name ? Infinity : row.model.length);
  const isOtherCase = (row: PriceRow) => (model.startsWith(row.model.replace(/\*$/, '')) ? 0 : 1);
  const compare = (a: number, b: number) => (a === b ? 0 : a < b ? -1 : 1);
  return [...rows]
    .sort(
      (a, b) =>
        compare(rank(a), rank(b)) ||
        compare(length(b), length(a)) ||
        compare(isOtherCase(a), isOtherCase(b)) ||
        compare(b.effective_from.getTime(), a.effective_from.getTime()),
    )
    .map((row) => ({ from: row.effective_from.getTime(), price: new CompiledPrice(row), row }));
}
