import type { ExtraUsage, TokenUsage } from '../bodies/usage/token-usage.js';
import { COLUMNS, type LogRow } from './columns.js';

/** The columns that usageOf() and the cost of a row need. */
export const COST_COLUMNS = [
  'prompt_tokens',
  'completion_tokens',
  'cached_tokens',
  'reasoning_tokens',
  'cache_write_tokens',
  'extra_usage',
  'cost_usd',
  'price_id',
] as const satisfies readonly (keyof LogRow)[];

/** The same for a SELECT, as a row of the log writer has them. */
export const SELECT_COST_COLUMNS = COST_COLUMNS.map((name) =>
  name === 'extra_usage' ? 'extra_usage::text AS extra_usage' : name,
).join(', ');

/** A row with at least these columns. */
export type CostRow = Pick<LogRow, (typeof COST_COLUMNS)[number]>;

/** The columns that the bounds of a cost need, and have, besides those above. */
export const BOUND_COLUMNS = [
  'usage_final',
  'cost_low_usd',
  'cost_high_usd',
  'input_limit',
  'output_limit',
  'status',
] as const satisfies readonly (keyof LogRow)[];
export type BoundedRow = CostRow & Pick<LogRow, (typeof BOUND_COLUMNS)[number]>;

/** SQL condition for rows with token counts, of which the cost can be computed. */
export const HAS_USAGE_SQL = '(prompt_tokens IS NOT NULL OR completion_tokens IS NOT NULL)';

/** SQL condition for rows with something that may have a price: tokens, or units such as seconds of sound. */
export const HAS_PRICED_USAGE_SQL = `(${HAS_USAGE_SQL} OR extra_usage IS NOT NULL)`;

/** SQL condition for rows without a cost. */
export const IS_UNPRICED_SQL = 'cost_usd IS NULL';

/** SQL condition for rows whose cost is not known, because what the provider billed was not read. */
export const IS_UNKNOWN_SQL = 'usage_final = false';
/** In an UPDATE of such a row: now it is. */
export const KNOWN_NOW_SQL = 'usage_final = true, cost_low_usd = NULL, cost_high_usd = NULL';
/** SQL conditions for rows without a cost although their usage is known, and sums of the bounds of the others. */
export const LACKS_COST_SQL = `${IS_UNPRICED_SQL} AND ${HAS_PRICED_USAGE_SQL} AND COALESCE(usage_final, true)`;
export const UNKNOWN_LOW_SQL = `CASE WHEN ${IS_UNKNOWN_SQL} THEN cost_low_usd END`;
export const UNKNOWN_HIGH_SQL = `CASE WHEN ${IS_UNKNOWN_SQL} THEN cost_high_usd END`;
export const IS_UNBOUNDED_SQL = `${IS_UNKNOWN_SQL} AND cost_high_usd IS NULL`;

/** SQL condition for rows whose cost or bounds can be computed: the provider did not report the cost. */
export const IS_PRICEABLE_SQL = `CASE WHEN ${IS_UNKNOWN_SQL} THEN model IS NOT NULL OR ${HAS_PRICED_USAGE_SQL}
  ELSE ${HAS_PRICED_USAGE_SQL} AND (${IS_UNPRICED_SQL} OR price_id IS NOT NULL) END`;

/** SQL condition for those of them that lack what a price yields. */
export const LACKS_PRICE_SQL = `CASE WHEN ${IS_UNKNOWN_SQL} THEN cost_low_usd IS NULL ELSE ${IS_UNPRICED_SQL} END`;

/** Whether the row has tokens, or units such as seconds of sound. */
export function hasUsage(row: CostRow): boolean {
  return row.prompt_tokens !== null || row.completion_tokens !== null || row.extra_usage !== null;
}

/** The usage that a row holds, without its cost. */
export function usageOf(row: CostRow): TokenUsage {
  return {
    promptTokens: row.prompt_tokens,
    cachedTokens: row.cached_tokens,
    cacheWriteTokens: row.cache_write_tokens,
    completionTokens: row.completion_tokens,
    reasoningTokens: row.reasoning_tokens,
    extra: row.extra_usage === null ? null : (JSON.parse(row.extra_usage) as ExtraUsage),
    reportedCost: null,
  };
}

/** What the row costs by now: before it is written, what the provider reported. */
export function costOf(row: CostRow): string | null {
  return row.cost_usd;
}

export function priceIdOf(row: CostRow): string | null {
  return row.price_id;
}

/** Whether the provider may have billed what was not read. */
export function isUnknown({ usage_final }: Pick<LogRow, 'usage_final'>): boolean {
  return usage_final === false;
}

/** The cost of the row is that of the responses that ended, and its bounds are what the open ones may add. */
export function isOfWebSocket({ status }: Pick<LogRow, 'status'>): boolean {
  return status === 101;
}

export function setUsageFinal(row: LogRow, isFinal: boolean | null): void {
  row.usage_final = isFinal;
}

/** The provider may have run tools: of a call whose usage is not final, it is not known how many. */
export function setUncountedTools(row: LogRow): void {
  if (!isUnknown(row)) return;
  const extra = row.extra_usage === null ? {} : (JSON.parse(row.extra_usage) as ExtraUsage);
  row.extra_usage = COLUMNS.extra_usage.toDomain({ ...extra, uncounted_tools: 1 }, null);
}

/** The bounds of a row, with nine decimal places. */
export function boundsOf({ cost_low_usd, cost_high_usd }: BoundedRow): [string | null, string | null] {
  return [cost_low_usd, cost_high_usd];
}

export function setBounds(row: BoundedRow, low: string | null, high: string | null): void {
  row.cost_low_usd = low;
  row.cost_high_usd = high;
}

/** The most tokens of a call whose usage is not final. Null: not known. */
export function limitsOf({ input_limit, output_limit }: BoundedRow): {
  input: number | null;
  output: number | null;
} {
  // Of a stored row, Postgres returns bigint as text.
  const numberOf = (value: number | string | null) => (value === null ? null : Number(value));
  return { input: numberOf(input_limit), output: numberOf(output_limit) };
}

/** Sets what the provider reported, which counts more than any price. */
export function setReportedCost(row: LogRow, reported: string | null): void {
  row.cost_usd = COLUMNS.cost_usd.toDomain(reported);
}

/** @param usd with nine decimal places */
export function setCost(row: CostRow, usd: string | null, priceId: string | null): void {
  row.cost_usd = usd;
  row.price_id = priceId;
}

/** Until its row is written, a call from the response cache has the tokens of the stored response. */
export function isCached({ outcome }: LogRow): boolean {
  return outcome === 'cached';
}

const FREE = COLUMNS.cost_usd.toDomain('0');

/**
 * Sets what a call from the response cache saved. The call itself cost nothing and used no tokens.
 *
 * @param usd what the tokens of the stored response cost; null: not known
 */
export function setSaved(row: LogRow, usd: string | null): void {
  row.saved_usd ??= usd;
  setCost(row, FREE, null);
  row.prompt_tokens = row.completion_tokens = row.cached_tokens = null;
  row.cache_write_tokens = row.reasoning_tokens = row.extra_usage = null;
}

/** Sets the usage and the cost of a call that turned out to have used nothing. @param row changed */
export function setFree<T extends CostRow>(row: T): T {
  setCost(row, FREE, null);
  row.prompt_tokens = row.completion_tokens = 0;
  row.cached_tokens = row.cache_write_tokens = row.reasoning_tokens = row.extra_usage = null;
  return row;
}

/** Sets the usage of a row. @param row changed */
export function setTokens<T extends CostRow>(row: T, usage: TokenUsage): T {
  row.prompt_tokens = COLUMNS.prompt_tokens.toDomain(usage.promptTokens);
  row.completion_tokens = COLUMNS.completion_tokens.toDomain(usage.completionTokens);
  row.cached_tokens = COLUMNS.cached_tokens.toDomain(usage.cachedTokens);
  row.cache_write_tokens = COLUMNS.cache_write_tokens.toDomain(usage.cacheWriteTokens);
  row.reasoning_tokens = COLUMNS.reasoning_tokens.toDomain(usage.reasoningTokens);
  row.extra_usage = COLUMNS.extra_usage.toDomain(usage.extra, null);
  return row;
}

/** The time of the update in an UPDATE of rows, so that exports and whatever else follows recorded_at see them again. */
export const UPDATED_NOW =
  "(recorded_at, repaired_at) = (SELECT t, t FROM date_trunc('milliseconds', clock_timestamp()) AS t)";

/**
 * Sets the cost of rows that are in Postgres: the values are arrays of their started_at, id, recorded_at as it was read,
 * cost and price, then the first and the last started_at, then arrays of the bounds. Through the parent table, with the time of the update, so that
 * exports and whatever else follows recorded_at see the rows again. A row that was updated meanwhile stays as it is.
 */
export const UPDATE_COSTS = `
  UPDATE request_log AS r
  SET cost_usd = u.cost, price_id = u.price, cost_low_usd = u.low, cost_high_usd = u.high,
      ${UPDATED_NOW}
  FROM unnest($1::timestamptz[], $2::uuid[], $3::timestamptz[], $4::numeric(18,9)[], $5::uuid[],
      $8::numeric(18,9)[], $9::numeric(18,9)[])
    AS u (started_at, id, recorded_at, cost, price, low, high)
  WHERE r.started_at = u.started_at AND r.id = u.id AND r.recorded_at = u.recorded_at
    AND r.started_at BETWEEN $6::timestamptz AND $7::timestamptz`;
