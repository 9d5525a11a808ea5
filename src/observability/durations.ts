import type { MetricObjectWithValues, MetricValue } from 'prom-client';

/** One series of a histogram: a loop and two additions for each value, nothing allocated and nothing looked up. */
export class Durations {
  sum = 0;
  readonly counts: Float64Array;

  /** @param bounds upper ones, in seconds, rising */
  constructor(readonly bounds: readonly number[]) {
    this.counts = new Float64Array(bounds.length + 1);
  }

  add(milliseconds: number): void {
    const seconds = milliseconds / 1_000;
    let at = 0;
    while (at < this.bounds.length && seconds > this.bounds[at]!) at++;
    this.counts[at]!++;
    this.sum += seconds;
  }
}

/**
 * A histogram as a prom-client registry takes it, made when it is scraped. prom-client's own would make and hash label
 * objects for each value.
 */
export class DurationMetric {
  readonly type = 'histogram';
  readonly aggregator = 'sum';

  constructor(
    readonly name: string,
    readonly help: string,
    readonly labelNames: readonly string[],
    private readonly series: () => Iterable<readonly [labels: Record<string, string>, Durations]>,
  ) {}

  get(): Promise<MetricObjectWithValues<MetricValue<string>>> {
    const values: MetricValue<string>[] = [];
    const push = (suffix: string, labels: Record<string, string | number>, value: number) =>
      values.push({ metricName: `${this.name}_${suffix}`, labels, value } as MetricValue<string>);
    for (const [labels, { bounds, counts, sum }] of this.series()) {
      let count = 0;
      bounds.forEach((le, i) => push('bucket', { ...labels, le }, (count += counts[i]!)));
      count += counts[bounds.length]!;
      push('bucket', { ...labels, le: '+Inf' }, count);
      push('sum', labels, sum);
      push('count', labels, count);
    }
    const { name, help, aggregator } = this;
    return Promise.resolve({ name, help, type: 'histogram', aggregator, values } as never);
  }
}
