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

/**
 * The content of `/metrics`: the metrics of all processes that share the port.
 *
 * @beta
 */
@Injectable()
export class MetricsService {
  readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE;
  private readonly registry = new Registry();
  private ofAll = async (): Promise<MetricValues[]> => [await this.own()];

  /** Registers metrics; a module registers its own in a constructor. */
  readonly instruments = new Instruments(this.registry);

  /** @internal */
  constructor(calls: CallMetrics, states: StateMetrics) {
    calls.register(this.instruments);
    states.register(this.instruments);
    // process_* and nodejs_*: the names that client libraries share and dashboards use.
    collectDefaultMetrics({ register: this.registry });
  }

  /**
   * Replaces the source of the metrics of all processes, by default only this one. A worker asks the primary instead.
   *
   * @internal
   */
  collectFrom(ofAll: () => Promise<MetricValues[]>): void {
    this.ofAll = ofAll;
  }

  /**
   * The metrics of this process.
   *
   * @internal
   */
  async own(): Promise<MetricValues> {
    return (await this.registry.getMetricsAsJSON()) as unknown as MetricValues;
  }

  /** In the text format of Prometheus. */
  async text(): Promise<string> {
    return addUp(await this.ofAll()).metrics();
  }
}

/** Combines the metrics of several processes in one registry, each by its own aggregation. */
export function addUp(values: MetricValues[]): Registry {
  return AggregatorRegistry.aggregate(values);
}
