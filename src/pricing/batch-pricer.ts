import { Injectable, Logger } from '@nestjs/common';
import { reportsCost } from '../providers/provider-catalog.js';
import { ProvidersService } from '../providers/providers.service.js';
import { describeError } from '../errors/describe-error.js';
import { formatDecimal, parseDecimal } from '../platform/decimal.js';
import { patience, withTimeout } from '../platform/patience.js';
import { chargesOf, raiseReservation } from '../request-log/charges.js';
import { startOf } from '../request-log/column-domains.js';
import type { LogRow } from '../request-log/columns.js';
import { leastOutputTokens } from '../request-log/log-row.js';
import { OutageLog } from '../request-log/writer/outage-log.js';
import {
  costOf,
  hasUsage,
  isCached,
  isOfWebSocket,
  isUnknown,
  limitsOf,
  priceIdOf,
  setBounds,
  setCost,
  setSaved,
  usageOf,
} from '../request-log/row-cost.js';
import type { RowPricer } from '../request-log/writer/row-pricer.js';
import { COST_SCALE } from './cost.js';
import { leastCostOf } from './least-cost.js';
import { type ModelPrices, priceAt, PriceResolver } from './price-resolver.js';
import { costBounds } from './costs/cost-bounds.js';
import { costOfUsage, modelsOf } from './costs/usage-cost.js';
import { UnpricedModels } from './unpriced-models.service.js';

/** How long a batch of rows waits for prices that are not in memory. */
const PRICES = patience('prices of a batch', 250);
/** No call costs more: a provider that reports more is mistaken. */
const MAX_REPORTED_NANO = 10_000n * 10n ** BigInt(COST_SCALE);
/** Providers beyond this number share one entry of the metrics. */
const MAX_PROVIDERS = 100;
const OTHER_PROVIDERS = 'others';
const NOTHING = formatDecimal(0n, COST_SCALE);

/** Since the start, of one provider. */
export interface CostFigures {
  nano: bigint;
  /** Saved by the response cache. */
  saved: bigint;
  unpriced: number;
  /** Calls whose usage is not final, by their outcome. */
  readonly unknown: Map<string, number>;
}

/** Computes the cost of rows before they are written, and counts it. */
@Injectable()
export class BatchPricer implements RowPricer {
  readonly figures = new Map<string, CostFigures>();
  private readonly outage = new OutageLog(new Logger('Prices'));

  constructor(
    private readonly resolver: PriceResolver,
    private readonly unpriced: UnpricedModels,
    private readonly providers: ProvidersService,
  ) {}

  price(rows: readonly LogRow[]): Promise<void> | null {
    const unknown: LogRow[] = [];
    let last: LogRow | null = null;
    let prices: ModelPrices | undefined;
    for (const row of rows) {
      // Every provider that is called appears in the metrics.
      const figures = this.figuresOf(row.provider);
      if (costOf(row) !== null && !this.isCredible(row)) setCost(row, null, null);
      this.raise(row);
      if (!hasUsage(row) && costOf(row) === null && !isUnknown(row)) {
        if (isCached(row)) setSaved(row, null);
        continue;
      }
      if (row.model !== null && (last?.model !== row.model || last.provider !== row.provider)) {
        prices = this.resolver.known(row.provider, row.model);
        last = row;
      }
      const isKnown = row.model === null ? this.knowsAll(row) : prices !== undefined;
      if (!isKnown && (costOf(row) === null || isUnknown(row))) unknown.push(row);
      else this.set(row, prices, figures);
    }
    const saving = this.unpriced.save();
    return unknown.length === 0 && saving === null ? null : this.priceLate(unknown, saving);
  }

  /** Prices of calls that a budget admitted are in memory. */
  private raise(row: LogRow): void {
    const output = leastOutputTokens(row);
    if (output === 0) return;
    const startedAt = startOf(row.id);
    const prices = row.model === null ? undefined : this.resolver.known(row.provider, row.model);
    const dated = priceAt(prices ?? [], startedAt);
    const usage = usageOf(row);
    const least = { ...usage, promptTokens: usage.promptTokens ?? 0, completionTokens: output };
    raiseReservation(
      row,
      dated && formatDecimal(leastCostOf(dated.price, least, startedAt), COST_SCALE),
      output,
    );
  }

  /** Waits for prices, and until the models without one are stored: a later price then finds the rows. */
  private async priceLate(unknown: readonly LogRow[], saving: Promise<void> | null): Promise<void> {
    const until = performance.now() + PRICES.ms;
    try {
      const models = unknown.flatMap((row) =>
        modelsOf(row.model, usageOf(row)).map((model) => ({ provider: row.provider, model })),
      );
      if (models.length > 0) await withTimeout(PRICES.ms, this.resolver.load(models));
      for (const row of unknown) {
        const prices = row.model === null ? undefined : this.resolver.known(row.provider, row.model);
        this.set(row, prices, this.figuresOf(row.provider));
      }
      const saved = this.unpriced.save() ?? saving;
      if (saved !== null) await withTimeout(Math.max(until - performance.now(), 0), saved);
    } catch (error) {
      this.outage.report('Models without a price cannot be noted right now', describeError(error));
    }
  }

  /** Whether the prices of all models that a WebSocket used are in memory. */
  private knowsAll(row: LogRow): boolean {
    const models = modelsOf(null, usageOf(row));
    return models.every((model) => this.resolver.known(row.provider, model) !== undefined);
  }

  /** @param prices of its model; undefined: they are not known, or it has none */
  private set(row: LogRow, prices: ModelPrices | undefined, figures: CostFigures): void {
    if (isUnknown(row)) {
      figures.unknown.set(row.outcome, (figures.unknown.get(row.outcome) ?? 0) + 1);
      if (!isOfWebSocket(row)) return this.bound(row, prices);
      // What its open responses add: their input is the whole conversation.
      setBounds(row, NOTHING, null);
      if (!hasUsage(row)) return;
    }
    const reported = costOf(row);
    const startedAt = startOf(row.id);
    const pricesOf = (model: string) =>
      row.model === null ? this.resolver.known(row.provider, model) : prices;
    const cost = reported === null ? costOfUsage(row.model, usageOf(row), pricesOf, startedAt) : null;
    const dated = cost === null ? null : cost.price;
    const nano = cost === null ? (parseDecimal(reported!, COST_SCALE) ?? 0n) : cost.nano;
    const isWhole = nano !== null && !isUnknown(row);
    if (cost !== null && !isWhole && chargesOf(row).usd !== null)
      raiseReservation(row, formatDecimal(cost.charge, COST_SCALE), 0);
    if (isCached(row)) {
      figures.saved += nano ?? 0n;
      setSaved(row, nano === null ? null : formatDecimal(nano, COST_SCALE));
    } else if (nano === null) {
      figures.unpriced++;
      if (dated === null && row.model !== null) this.unpriced.add(row);
    } else {
      figures.nano += nano;
      if (reported === null) setCost(row, formatDecimal(nano, COST_SCALE), dated!.price.id);
    }
  }

  /** Sets between what a call costs whose usage is not final. @param prices as for set() */
  private bound(row: LogRow, prices: ModelPrices | undefined): void {
    const startedAt = startOf(row.id);
    const dated = row.model === null ? null : priceAt(prices ?? [], startedAt);
    setCost(row, null, null);
    if (dated === null) {
      if (row.model !== null) this.unpriced.add(row);
      return;
    }
    const usage = usageOf(row);
    const { low, high } = costBounds(dated.price, usage, limitsOf(row), startedAt);
    // What a job may use does not stand in the request that created it.
    const isBounded = high !== null && row.job === undefined;
    setBounds(row, formatDecimal(low, COST_SCALE), isBounded ? formatDecimal(high, COST_SCALE) : null);
    if (chargesOf(row).usd === null || !hasUsage(row)) return;
    const least = leastCostOf(dated.price, { ...usage, promptTokens: usage.promptTokens ?? 0 }, startedAt);
    raiseReservation(row, formatDecimal(least, COST_SCALE), 0);
  }

  /** Whether the cost of a row is one that its provider is known to report, or that a price yielded earlier. */
  private isCredible(row: LogRow): boolean {
    if (priceIdOf(row) !== null) return true;
    const nano = parseDecimal(costOf(row)!, COST_SCALE) ?? MAX_REPORTED_NANO;
    return nano < MAX_REPORTED_NANO && reportsCost(this.providers.catalogOf(row.provider));
  }

  private figuresOf(provider: string): CostFigures {
    const known = this.figures.get(provider);
    if (known !== undefined) return known;
    if (this.figures.size >= MAX_PROVIDERS && provider !== OTHER_PROVIDERS)
      return this.figuresOf(OTHER_PROVIDERS);
    const made = { nano: 0n, saved: 0n, unpriced: 0, unknown: new Map<string, number>() };
    this.figures.set(provider, made);
    return made;
  }
}
