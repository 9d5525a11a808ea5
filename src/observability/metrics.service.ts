import { Injectable } from '@nestjs/common';
import {
  AggregatorRegistry,
  collectDefaultMetrics,
  type MetricObjectWithValues,
  Registry,
} from 'prom-client';
import { CallMetrics } from './call-metrics.js';
import { Instruments } from './instruments.js';
import { StateMetrics } from './state-metrics.js';

/** All metrics of one process, as plain values that another process can add up. */
export type MetricValues = MetricObjectWithValues<never>[];

/** What `/metrics` says: the figures of all processes that share the port. */
@Injectable()
export class MetricsService {
  readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE;
  /** The figures of all processes; alone, its own. A worker asks the primary instead. */
  ofAll: () => Promise<MetricValues[]> = async () => [await this.own()];
  private readonly registry = new Registry();

  constructor(calls: CallMetrics, states: StateMetrics) {
    const instruments = new Instruments(this.registry);
    calls.register(instruments);
    states.register(instruments);
    // process_* and nodejs_*: the names every client library gives them, which dashboards know.
    collectDefaultMetrics({ register: this.registry });
  }

  /** The figures of this process. */
  async own(): Promise<MetricValues> {
    return (await this.registry.getMetricsAsJSON()) as unknown as MetricValues;
  }

  /** In the text format of Prometheus. */
  async text(): Promise<string> {
    return addUp(await this.ofAll()).metrics();
  }
}

/** One registry with the figures of several processes, each added up as it says of itself. */
export function addUp(values: MetricValues[]): Registry {
  return AggregatorRegistry.aggregate(values);
}
