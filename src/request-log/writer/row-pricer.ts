import type { LogRow } from '../columns.js';

/** The provider of the RowPricer, if the gateway has one. The module of prices provides it. */
export const ROW_PRICER = Symbol('RowPricer');

/** Computes what calls cost, for the log writer. */
export interface RowPricer {
  /**
   * Sets the cost of rows that have none, before they are written. It never rejects, and it never takes long.
   *
   * @returns null if it is done already
   */
  price(rows: readonly LogRow[]): Promise<void> | null;
}

/** A row that waits to be written. */
export interface Priceable {
  row: LogRow;
  /** True once the pricer has seen it. */
  isPriced?: boolean;
}

/** Prices each row once, however often its batch is tried. */
export async function priceOnce(pricer: RowPricer | null, batch: readonly Priceable[]): Promise<void> {
  if (pricer === null) return;
  const rows = batch.filter(({ isPriced }) => !isPriced).map(({ row }) => row);
  if (rows.length > 0) await pricer.price(rows);
  for (const waiting of batch) waiting.isPriced = true;
}
