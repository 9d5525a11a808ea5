import {
  HAS_USAGE_SQL,
  IS_UNBOUNDED_SQL,
  IS_UNKNOWN_SQL,
  LACKS_COST_SQL,
  UNKNOWN_HIGH_SQL,
  UNKNOWN_LOW_SQL,
} from '../request-log/row-cost.js';
import { IS_ERROR_SQL } from '../requests/request-query.js';

/** A value that usage adds up. */
export interface Measure {
  /** SQL type of its sum in `usage_slot`. */
  readonly type: 'bigint' | 'numeric' | 'double precision' | 'bigint[]';
  /** Aggregate over rows of `request_log`. */
  readonly ofRows: string;
  /** The same over the rows of the archive, in the words of ClickHouse: without a type, which would round sums of money. */
  readonly clickhouse: string;
  /** Adds two sums of it. */
  readonly add: (a: string, b: string) => string;
  /** Aggregate over rows of `usage_slot`. */
  readonly ofSlots: (column: string) => string;
}

/** A sum of a nullable value is null if no row has the value. */
const addNullable = (a: string, b: string): string => `COALESCE(${a} + ${b}, ${a}, ${b})`;
const sum = (column: string): string => `sum(${column})`;
/** A sum of `int` takes half the time and memory of one of `bigint`. No key makes 2^31 calls in a day. */
const sumOfCounts = (column: string): string => `sum(${column}::int)`;

function count(condition: string): Measure {
  const rows = `count(*) FILTER (WHERE ${condition})`;
  return {
    type: 'bigint',
    ofRows: rows,
    clickhouse: rows,
    add: (a, b) => `${a} + ${b}`,
    ofSlots: sumOfCounts,
  };
}

/** @param condition of the rows to add up */
function total(column: string, type: Measure['type'] = 'bigint', condition = ''): Measure {
  const filter = condition === '' ? '' : ` FILTER (WHERE ${condition})`;
  const rows = `(sum(${column})${filter})`;
  return { type, ofRows: `${rows}::${type}`, clickhouse: rows, add: addNullable, ofSlots: sum };
}

/** Matches one row of each call: an attempt that a route retried is not the one that the client got. */
const IS_CALL = `outcome <> 'retried'`;

/**
 * Matches calls that may have used tokens although none are known, such as a stream without `include_usage`. Of rejected
 * calls and of requests without a body, such as a list of models, no provider reports any.
 */
const LACKS_TOKENS = `method = 'POST' AND (status < 400 OR status IS NULL) AND outcome NOT IN ('replayed', 'cached', 'retried')
  AND NOT ${HAS_USAGE_SQL}`;

/**
 * Upper bounds of the latency classes, in milliseconds; the last class has none. Each bound is about twice the one before,
 * so that an interpolated percentile is off by less than half of its value.
 */
export const LATENCY_BOUNDS_MS = [
  50, 100, 250, 500, 1_000, 2_000, 4_000, 8_000, 15_000, 30_000, 60_000,
] as const;

const CLASSES = Array.from({ length: LATENCY_BOUNDS_MS.length + 1 }, (_, i) => i);
const inClass = (i: number): string =>
  [
    ...(i > 0 ? [`duration_ms >= ${LATENCY_BOUNDS_MS[i - 1]}`] : []),
    ...(i < LATENCY_BOUNDS_MS.length ? [`duration_ms < ${LATENCY_BOUNDS_MS[i]}`] : []),
  ].join(' AND ');
const list = (sql: (i: number) => string): string => `[${CLASSES.map(sql).join(', ')}]`;
const array = (sql: (i: number) => string): string => `ARRAY${list(sql)}`;
const callsInClass = (i: number): string => `count(*) FILTER (WHERE ${inClass(i)} AND ${IS_CALL})`;

const LATENCY: Measure = {
  type: 'bigint[]',
  ofRows: array(callsInClass),
  clickhouse: list(callsInClass),
  add: (a, b) => array((i) => `${a}[${i + 1}] + ${b}[${i + 1}]`),
  ofSlots: (column) => array((i) => sumOfCounts(`${column}[${i + 1}]`)),
};

/** Everything that usage adds up, under the names of the columns of `usage_slot`. */
export const MEASURES = {
  calls: count(IS_CALL),
  retried_attempts: count(`outcome = 'retried'`),
  errors: count(IS_ERROR_SQL),
  calls_without_tokens: count(LACKS_TOKENS),
  unpriced_calls: count(LACKS_COST_SQL),
  prompt_tokens: total('prompt_tokens'),
  completion_tokens: total('completion_tokens'),
  cached_tokens: total('cached_tokens'),
  cache_write_tokens: total('cache_write_tokens'),
  reasoning_tokens: total('reasoning_tokens'),
  cost_usd: total('cost_usd', 'numeric'),
  unknown_calls: count(IS_UNKNOWN_SQL),
  unknown_low_usd: total(UNKNOWN_LOW_SQL, 'numeric'),
  unknown_high_usd: total(UNKNOWN_HIGH_SQL, 'numeric'),
  unbounded_calls: count(IS_UNBOUNDED_SQL),
  saved_usd: total('saved_usd', 'numeric'),
  request_bytes: total('request_bytes', 'bigint', IS_CALL),
  response_bytes: total('response_bytes'),
  duration_ms: total('duration_ms', 'double precision', IS_CALL),
  latency: LATENCY,
} as const satisfies Record<string, Measure>;
