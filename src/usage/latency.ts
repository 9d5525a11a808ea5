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
