// Statistics of many measurements. Pure: the tests in test/bench are on these.

/** The middle one; of an even number the mean of the two in the middle. Null without any. */
export function median(values) {
  const known = values.filter((value) => value !== null && value !== undefined);
  if (known.length === 0) return null;
  const sorted = [...known].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The smallest value that at least `share` (0 to 1) of all are not above (nearest rank). Null without any. */
export function percentile(values, share) {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

/** Element by element a[i] / b[i], where both are known: of interleaved rounds, so that what slows a machine down cancels. */
export function ratios(a, b) {
  const found = [];
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    if (a[i] !== null && b[i] !== null && b[i] > 0) found.push(a[i] / b[i]);
  }
  return found;
}

/** When the calls of an open loop are due: evenly spaced, whatever happens to the ones before. */
export class Schedule {
  /** @param begin ms; ratePerSecond calls a second */
  constructor(begin, ratePerSecond) {
    this.begin = begin;
    this.apart = 1_000 / ratePerSecond;
    this.next = 0;
  }

  /** How many calls have become due until `now` (ms) and were not taken yet. */
  due(now) {
    const until = Math.floor((now - this.begin) / this.apart) + 1;
    return Math.max(0, until - this.next);
  }

  /** When the next call was meant to be sent; each is given once. */
  take() {
    return this.begin + this.next++ * this.apart;
  }
}

/** The medians of a series' first and of its last quarter: whether something grows shows better there than at its ends. */
export function quarters(series) {
  const quarter = Math.max(1, Math.floor(series.length / 4));
  return { first: median(series.slice(0, quarter)), last: median(series.slice(-quarter)) };
}
