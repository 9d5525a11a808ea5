import { Counter, Gauge, type Metric, type Registry } from 'prom-client';
import type { DurationMetric } from './durations.js';

type Sample = readonly [labels: Record<string, string>, value: number];
/** The value of a metric when it is scraped: one number, or one for each set of labels. */
export type Reading = () => number | Iterable<Sample>;

/** How the values of several processes are combined. */
type Aggregator = 'sum' | 'max' | 'min';

/**
 * Registers metrics that are read when they are scraped. Modules count in plain numbers, so this adds no cost per call.
 */
export class Instruments {
  constructor(private readonly registry: Registry) {}

  /** @param read must never go down */
  counter(name: string, help: string, read: Reading, ...labelNames: string[]): void {
    new Counter({
      ...this.base(name, help, labelNames),
      collect() {
        this.reset();
        for (const [labels, value] of samples(read)) this.inc(labels, value);
      },
    });
  }

  gauge(name: string, help: string, read: Reading, ...labelNames: string[]): void {
    this.gaugeBy('sum', name, help, read, ...labelNames);
  }

  gaugeBy(aggregator: Aggregator, name: string, help: string, read: Reading, ...labelNames: string[]): void {
    new Gauge({
      ...this.base(name, help, labelNames),
      aggregator,
      collect() {
        this.reset();
        for (const [labels, value] of samples(read)) this.set(labels, value);
      },
    });
  }

  histogram(metric: DurationMetric): void {
    this.registry.registerMetric(metric as unknown as Metric);
  }

  private base(name: string, help: string, labelNames: string[]) {
    return { name, help, labelNames, registers: [this.registry] };
  }
}

function samples(read: Reading): Iterable<Sample> {
  const value = read();
  return typeof value === 'number' ? [[{}, value]] : value;
}
