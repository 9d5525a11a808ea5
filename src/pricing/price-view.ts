import { isDeepStrictEqual } from 'node:util';
import { formatDecimal, parseDecimal } from '../platform/decimal.js';
import { UNIT_SCALE } from './cost.js';
import type { PriceRow } from './price-rows.js';
import type { PriceView } from './prices.schema.js';

/** Lists each field, so that a new column is not shown by accident. */
export function priceView(row: PriceRow): PriceView {
  return {
    id: row.id,
    catalog: row.catalog,
    model: row.model,
    effective_from: row.effective_from.toISOString(),
    input: row.input,
    cached_input: row.cached_input,
    cache_write: row.cache_write,
    cache_write_1h: row.cache_write_1h,
    output: row.output,
    per_call: row.per_call,
    extra: row.extra as PriceView['extra'],
    tiers: row.tiers as PriceView['tiers'],
    note: row.note,
    source: row.source,
    version: row.version,
    created_at: row.created_at.toISOString(),
  };
}

/** Whether two amounts are the same, however many zeros they end in, and whatever order jsonb gave them. */
export function isSameAmount(one: unknown, other: unknown): boolean {
  return isDeepStrictEqual(plain(one), plain(other));
}

function plain(value: unknown): unknown {
  const units = typeof value === 'string' ? parseDecimal(value, UNIT_SCALE) : null;
  return units === null ? (value ?? null) : formatDecimal(units, UNIT_SCALE);
}
