import { v7 as uuidv7 } from 'uuid';
import type { LookupPool } from '../database/lookup-pool.js';
import type { CatalogPrice } from './catalog-prices.js';
import type { StoredPrice } from './cost.js';
import { joinParts, partsOf, type PriceParts } from './costs/price-parts.js';
import type { PriceSource } from './price.entity.js';

/** A model of a provider, as calls name it. */
export interface PricedModel {
  provider: string;
  /** The provider's price list. */
  catalog: string | null;
  model: string;
}

/** A row of the table `price`. */
export interface PriceRow extends StoredPrice {
  catalog: string;
  model: string;
  effective_from: Date;
  source: PriceSource;
  note: string | null;
  version: number;
  created_at: Date;
}

const AMOUNTS = ['input', 'cached_input', 'cache_write', 'cache_write_1h', 'output', 'per_call'] as const;

/** What a price consists of: all columns but its ID, what it is a price of, and what Postern keeps about it. */
export const PRICE_COLUMNS = ['effective_from', ...AMOUNTS, 'extra', 'tiers', 'note'] as const;
const STORED_COLUMNS = [...PRICE_COLUMNS, 'units', 'unit_tiers'] as const;

export const SELECT_PRICES = `
  SELECT p.id, p.catalog, p.model, p.source, p.version, p.created_at, ${STORED_COLUMNS.map((name) => `p.${name}`).join(', ')}`;

/** As SELECT_PRICES reads it. */
export type StoredRow = PriceRow & PriceParts;

export function priceRow(row: StoredRow): PriceRow {
  return joinParts(row);
}

/**
 * All prices that may apply to these models. Only a custom price has a pattern: a model of the catalog is stored under the
 * name that was called, in which an asterisk means nothing. Custom prices match in any case, as the catalog does: many
 * providers take names of models so, and a caller must not choose its price by the case in which it writes one.
 */
const FIND = `${SELECT_PRICES}, called.place::int
  FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS called (provider, catalog, model, place)
  JOIN price p ON
    p.source = 'custom' AND p.catalog IN (called.provider, called.catalog)
      AND (lower(p.model) = lower(called.model)
        OR right(p.model, 1) = '*' AND starts_with(lower(called.model), lower(left(p.model, -1))))
    OR p.source = 'catalog' AND p.catalog = called.catalog AND p.model = called.model`;

/** @returns the prices of each model, in the order of the models; the prices of one are in no order */
export async function findPrices(pool: LookupPool, models: readonly PricedModel[]): Promise<PriceRow[][]> {
  const found: PriceRow[][] = models.map(() => []);
  const values = (['provider', 'catalog', 'model'] as const).map((name) =>
    models.map((model) => model[name]),
  );
  for (const { place, ...row } of await pool.query<(StoredRow & { place: number })[]>(FIND, values)) {
    found[place - 1]!.push(priceRow(row));
  }
  return found;
}

/** Start of the note of a price that was taken from the catalog; its version follows. */
const NOTE = 'genai-prices';

/** Stores what the catalog has, and corrects what an older version of it had. */
const STORE = `
  INSERT INTO price (id, catalog, model, source, ${STORED_COLUMNS.join(', ')})
  SELECT r.id, $2, $3, 'catalog', ${STORED_COLUMNS.map((name) => (name === 'note' ? '$4' : `r.${name}`)).join(', ')}
  FROM jsonb_to_recordset($1) AS r (
    id uuid, effective_from timestamptz, ${AMOUNTS.map((name) => `${name} numeric`).join(', ')}, extra jsonb, tiers jsonb,
    units jsonb, unit_tiers jsonb)
  ON CONFLICT (catalog, model, effective_from, source) DO UPDATE
  SET ${STORED_COLUMNS.map((name) => `${name} = EXCLUDED.${name}`).join(', ')}, version = price.version + 1
  WHERE price.note IS DISTINCT FROM EXCLUDED.note`;

/** @param version of the catalog, such as 0.1.8 */
export async function storeCatalogPrices(
  pool: LookupPool,
  { catalog, model }: PricedModel,
  prices: readonly CatalogPrice[],
  version: string,
): Promise<void> {
  const rows = prices.map((price) => ({ id: uuidv7(), ...price, ...partsOf(price.extra, price.tiers) }));
  await pool.query(STORE, [JSON.stringify(rows), catalog, model, `${NOTE} ${version}`]);
}

/** Whether a price was taken from a catalog older than this version. */
export function isOutdated({ source, note }: PriceRow, version: string): boolean {
  if (source !== 'catalog') return false;
  const [was, is] = [note?.slice(NOTE.length + 1) ?? '', version].map((text) => text.split('.').map(Number));
  const differing = is!.findIndex((part, i) => part !== was![i]);
  return differing !== -1 && !(was![differing]! > is![differing]!);
}
