import { LATENCY_BOUNDS_MS } from './measures.js';

/**
 * A percentile of durations, interpolated within its class; null if there are none. In the last class, which has no upper
 * bound, it is the lower bound.
 *
 * @param classes how many durations lie in each class of LATENCY_BOUNDS_MS @param share 0.5 for the median
 * @returns whole milliseconds
 */
export function percentile(classes: readonly number[], share: number): number | null {
  const count = classes.reduce((a, b) => a + b, 0);
  if (count === 0) return null;
  let below = 0;
  for (const [i, size] of classes.entries()) {
    if (below + size >= count * share && size > 0) {
      const low = LATENCY_BOUNDS_MS[i - 1] ?? 0;
      const high = LATENCY_BOUNDS_MS[i] ?? low;
      return Math.round(low + ((count * share - below) / size) * (high - low));
    }
    below += size;
  }
  return null;
}

/** SQL expression of percentile(), 0 if there are none. @param classes name of the column with the counts */
export function percentileSql(classes: string, share: number): string {
  const lows = [0, ...LATENCY_BOUNDS_MS];
  const highs = [...LATENCY_BOUNDS_MS, LATENCY_BOUNDS_MS.at(-1)!];
  return `COALESCE((
    SELECT floor(low + (share - below) / size * (high - low) + 0.5)
    FROM (SELECT size, low, high, sum(size) OVER (ORDER BY i) - size AS below, sum(size) OVER () * ${share} AS share
          FROM unnest(${classes}, ARRAY[${lows.join()}]::float8[], ARRAY[${highs.join()}]::float8[])
            WITH ORDINALITY AS class (size, low, high, i)) AS counted
    WHERE below + size >= share AND size > 0
    ORDER BY below LIMIT 1), 0)`;
}
