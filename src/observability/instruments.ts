import { Logger } from '@nestjs/common';
import { Counter, Gauge, type Metric, type Registry } from 'prom-client';
import type { DurationMetric } from './durations.js';

/** One value of a metric, with its labels. */
export type Sample = readonly [labels: Record<string, string>, value: number];

/** The value of a metric when it is scraped: one number, or one for each set of labels. */
export type Reading = () => number | Iterable<Sample>;

const REMIND_MS = 60_000;

/** Registers metrics that are read when they are scraped. Modules count in plain numbers, so this adds no cost per call. */
export class Instruments {
  private readonly logger = new Logger('Metrics');
  private readonly loggedAt = new Map<string, number>();

  /** @internal */
  constructor(private readonly registry: Registry) {}

  /**
   * A metric that only grows.
   *
   * @param read must never go down
   */
  counter(name: string, help: string, read: Reading, ...labelNames: string[]): void {
    const samples = () => this.samples(name, read);
    new Counter({
      ...this.base(name, help, labelNames),
      collect() {
        const values = samples();
        if (values === null) return;
        this.reset();
        for (const [labels, value] of values) this.inc(labels, value);
      },
    });
  }

  /** A metric that goes up and down. The values of several processes are added up. */
  gauge(name: string, help: string, read: Reading, ...labelNames: string[]): void {
    this.gaugeBy('sum', name, help, read, ...labelNames);
  }

  /** A gauge with another way to combine the values of several processes. */
  gaugeBy(
    aggregator: 'sum' | 'max' | 'min',
    name: string,
    help: string,
    read: Reading,
    ...labelNames: string[]
  ): void {
    const samples = () => this.samples(name, read);
    new Gauge({
      ...this.base(name, help, labelNames),
      aggregator,
      collect() {
        const values = samples();
        if (values === null) return;
        this.reset();
        for (const [labels, value] of values) this.set(labels, value);
      },
    });
  }

  /** @internal */
  histogram(metric: DurationMetric): void {
    this.registry.registerMetric(metric as unknown as Metric);
  }

  private base(name: string, help: string, labelNames: string[]) {
    return { name, help, labelNames, registers: [this.registry] };
  }

  /** @returns null if `read` throws: the metric keeps its last values, the others are scraped as ever */
  private samples(name: string, read: Reading): Iterable<Sample> | null {
    try {
      const value = read();
      return typeof value === 'number' ? [[{}, value]] : [...value];
    } catch (error) {
      const now = performance.now();
      if (now - (this.loggedAt.get(name) ?? -Infinity) >= REMIND_MS) {
        this.loggedAt.set(name, now);
        const stack = error instanceof Error ? error.stack : undefined;
        this.logger.error(
          `The metric ${name} cannot be read (logged once a minute): ${String(error)}`,
          stack,
        );
      }
      return null;
    }
  }
}
