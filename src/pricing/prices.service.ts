import { Injectable } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { audited, lockRow, type Subject } from '../audit/audited.js';
import { recordChange, type Shown } from '../audit/record-change.js';
import { idOfCursor, isUuid, type Page, pageOf } from '../database/page.js';
import type { Expected } from '../database/revision.js';
import { isUniqueViolation } from '../database/sql-state.js';
import { transacted } from '../database/transactions.js';
import { ServiceError } from '../errors/service-error.js';
import type { Actor } from '../platform/actor.js';
import { patience } from '../platform/patience.js';
import { ProvidersService } from '../providers/providers.service.js';
import { Price } from './price.entity.js';
import { PriceResolver } from './price-resolver.js';
import { PRICE_COLUMNS, priceRow, type PriceRow, SELECT_PRICES, type StoredRow } from './price-rows.js';
import { partsOf } from './costs/price-parts.js';
import { isSameAmount, priceView } from './price-view.js';
import {
  MISSING_DAYS,
  type NewPrice,
  type PriceChange,
  type PriceFilter,
  type PriceView,
  type RepricedView,
  type Repricing,
  type Resolution,
  type ResolveQuery,
} from './prices.schema.js';
import { type Place, Repricer } from './repricer.service.js';
import { UnpricedModels } from './unpriced-models.service.js';

/** The repair of costs, which runs every minute, is soon done. */
const LOCK_TIMEOUT = patience('the lock of a repricing', 5_000);

const LIST = `${SELECT_PRICES} FROM price p
  WHERE ($1::text IS NULL OR p.catalog = $1) AND ($2::text IS NULL OR p.model = $2)
    AND ($3::text IS NULL OR p.source = $3) AND ($4::uuid IS NULL OR p.id < $4)
  ORDER BY p.id DESC LIMIT $5`;
const FIND = `${SELECT_PRICES} FROM price p WHERE p.id = $1`;

const PRICE: Subject<PriceView> = {
  type: 'price',
  lock: lockRow(Price),
  find,
  shown: named,
};

/** Sets, shows and explains prices. */
@Injectable()
export class PricesService {
  /** A repricing of months takes longer than any HTTP client waits, so that it takes many requests. */
  repriceMs = 10_000;

  constructor(
    private readonly manager: EntityManager,
    private readonly resolver: PriceResolver,
    private readonly providers: ProvidersService,
    private readonly unpriced: UnpricedModels,
    private readonly repricer: Repricer,
  ) {}

  /** The same service, whose work is part of the transaction of `manager`. */
  in(manager: EntityManager): PricesService {
    const { resolver, providers, unpriced, repricer } = this;
    return new PricesService(manager, resolver, providers, unpriced, repricer);
  }

  /** Newest first. @throws ServiceError invalid for a foreign cursor */
  async list({ catalog, model, source, limit, cursor }: PriceFilter): Promise<Page<PriceView>> {
    const values = [catalog ?? null, model ?? null, source ?? null, idOfCursor(cursor), limit + 1];
    const rows = await this.manager.query<StoredRow[]>(LIST, values);
    return pageOf(rows.map(priceRow), limit, priceView);
  }

  /** @throws ServiceError conflict if there is a custom price for the same model from the same time on */
  create({ catalog, model, ...amounts }: NewPrice, by: Actor): Promise<PriceView> {
    const id = uuidv7();
    const creating = transacted(this.manager, async (manager) => {
      await manager.insert(Price, { id, catalog, model, source: 'custom', ...columnsOf(amounts) });
      const after = await find(manager, id);
      await recordChange(manager, by, {
        action: 'created',
        type: 'price',
        before: null,
        after: named(after),
      });
      return after;
    });
    return this.inForce(creating);
  }

  /**
   * Changes a price. Rows of the log keep their cost until they are repriced.
   *
   * @throws ServiceError not_found; conflict if it is of the catalog, was changed since `expected`, or another price begins
   *   at that time
   */
  update(id: string, change: PriceChange, by: Actor, expected: Expected = null): Promise<PriceView> {
    const request = { id, action: 'changed', by, expected };
    const changing = audited(this.manager, PRICE, request, async (manager, before) => {
      mustBeCustom(before);
      const present = { ...before, effective_from: new Date(before.effective_from) };
      const wanted = { ...present, ...change };
      if (PRICE_COLUMNS.every((name) => isSameAmount(wanted[name], present[name]))) return null;
      await manager.update(Price, id, columnsOf(change));
      return {};
    });
    return this.inForce(changing);
  }

  /** @throws ServiceError not_found */
  get(id: string): Promise<PriceView> {
    return find(this.manager, id);
  }

  /**
   * Removes a price. Rows of the log keep their cost, and the id of the price.
   *
   * @throws ServiceError not_found; conflict if it is of the catalog or was changed since `expected`
   */
  async remove(id: string, by: Actor, expected: Expected = null): Promise<void> {
    const request = { id, action: 'removed', by, expected, removes: true };
    const removing = audited(this.manager, PRICE, request, async (manager, before) => {
      mustBeCustom(before);
      await manager.delete(Price, id);
      return {};
    });
    await this.inForce(removing);
  }

  /** Which price applies to a call, and why. */
  async resolve({ provider, model, at = new Date() }: ResolveQuery): Promise<Resolution> {
    const catalog = this.providers.catalogOf(provider);
    const found = await this.resolver.resolve(provider, model, at.getTime());
    return {
      provider,
      catalog,
      model,
      at: at.toISOString(),
      price: found && priceView(found.row),
      reason: reasonOf(found?.row ?? null, provider, catalog),
    };
  }

  /** Models called in the last 7 days that have no price. */
  async missing(): Promise<{ provider: string; model: string }[]> {
    return this.resolver.withoutPrice(await this.unpriced.list(MISSING_DAYS));
  }

  /**
   * Computes the costs of stored calls again, for about `repriceMs`: the cursor of the result goes on from there. Sums of
   * usage have the new costs when it returns. A repricing that was interrupted can be repeated.
   *
   * @throws ServiceError conflict while another one runs, invalid for a foreign cursor
   */
  async reprice(repricing: Repricing, by: Actor): Promise<RepricedView> {
    const { from, to, model, cursor, dry_run: isDryRun } = repricing;
    const after = cursor === undefined ? undefined : placeOf(cursor, repricing);
    const result = await this.repricer.exclusively(async (client) => {
      if (!isDryRun) await this.recordRepricing(after?.startedAt ?? from, to, model, by);
      return this.repricer.reprice(client, { from, to, model, after }, isDryRun, this.repriceMs);
    }, LOCK_TIMEOUT.ms);
    if (result === null) {
      throw ServiceError.of(
        'conflict',
        'from',
        'costs are being updated already; try again when that has ended',
      );
    }
    const { next, ...sums } = result;
    if (!isDryRun && sums.changed > 0) await this.repricer.afterwards();
    return { ...sums, dry_run: isDryRun, next_cursor: next && cursorOf(next) };
  }

  /** Before the first change, because what is done stays done if it is interrupted. */
  private async recordRepricing(from: Date, to: Date, model: string | undefined, by: Actor): Promise<void> {
    const after = { id: uuidv7(), name: 'request log', from, to, ...(model !== undefined && { model }) };
    await transacted(this.manager, (manager) =>
      recordChange(manager, by, { action: 'repriced', type: 'price', before: null, after }),
    );
  }

  /** Brings a change into force in this process. */
  private async inForce(changing: Promise<PriceView>): Promise<PriceView> {
    let result: PriceView;
    try {
      result = await changing;
    } catch (error) {
      if (!isUniqueViolation(error, 'price_catalog_model_effective_from_key')) throw error;
      throw ServiceError.of(
        'conflict',
        'effective_from',
        'this model has a custom price from this time on; change that price, or choose another time',
      );
    }
    this.resolver.forget();
    return result;
  }
}

/** TypeORM leaves out what is undefined. */
function columnsOf({
  effective_from,
  cached_input,
  cache_write,
  cache_write_1h,
  per_call,
  extra,
  tiers,
  ...others
}: PriceChange) {
  const parts = partsOf(extra ?? null, tiers ?? null);
  return {
    effectiveFrom: effective_from,
    cachedInput: cached_input,
    cacheWrite: cache_write,
    cacheWrite1h: cache_write_1h,
    perCall: per_call,
    ...(extra !== undefined && { extra: parts.extra, units: parts.units }),
    ...(tiers !== undefined && { tiers: parts.tiers, unitTiers: parts.unit_tiers }),
    ...others,
  };
}

async function find(manager: EntityManager, id: string): Promise<PriceView> {
  const [row] = isUuid(id) ? await manager.query<StoredRow[]>(FIND, [id]) : [];
  if (row !== undefined) return priceView(priceRow(row));
  throw ServiceError.of('not_found', 'id', 'no price has this id; list the prices to find it');
}

function mustBeCustom({ source }: PriceView): void {
  if (source === 'custom') return;
  throw ServiceError.of(
    'conflict',
    'source',
    'this price is taken from the catalog; create a custom price, which comes before it',
  );
}

function cursorOf({ startedAt, id }: Place): string {
  return Buffer.from(`${startedAt.getTime()} ${id}`).toString('base64url');
}

function placeOf(cursor: string, { from, to }: Repricing): Place {
  const [time = '', id = ''] = Buffer.from(cursor, 'base64url').toString().split(' ');
  const startedAt = new Date(/^\d{1,15}$/.test(time) ? Number(time) : NaN);
  if (startedAt >= from && startedAt < to && isUuid(id)) return { startedAt, id };
  throw ServiceError.of(
    'invalid',
    'cursor',
    'must be the next_cursor of a response for the same from and to; leave it out to begin',
  );
}

/** As the audit log names it. */
function named(price: PriceView): Shown {
  return { name: `${price.catalog}/${price.model}`, ...price };
}

function reasonOf(row: PriceRow | null, provider: string, catalog: string | null): string {
  if (row === null) {
    return catalog === null
      ? `Provider ${provider} has no price list, and no custom price matches.`
      : `Neither a custom price nor the price list ${catalog} has this model.`;
  }
  const since = row.effective_from.getTime() === 0 ? '' : ` since ${row.effective_from.toISOString()}`;
  if (row.source === 'catalog') return `Price list ${row.catalog}${since}; no custom price matches.`;
  const whose = row.catalog === provider ? `for provider ${provider}` : `for price list ${row.catalog}`;
  return `Custom price ${whose}, model ${row.model}${since}: the longest match.`;
}
