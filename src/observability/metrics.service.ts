import { setTimeout as sleep } from 'node:timers/promises';
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

const FIRST_SAMPLES_MS = 50;

/** All metrics of one process, as plain values that another process can add up. */
export type MetricValues = MetricObjectWithValues<never>[];

/** The content of `/metrics`: the metrics of all processes that share the port. */
@Injectable()
export class MetricsService {
  /** @internal */
  readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE;
  private readonly registry = new Registry();
  private isScraped = false;
  private ofAll = async (): Promise<MetricValues[]> => [await this.own()];

  /** Registers metrics; a module registers its own in a constructor. */
  readonly instruments = new Instruments(this.registry);

  /** @internal */
  constructor(calls: CallMetrics, states: StateMetrics) {
    calls.register(this.instruments);
    states.register(this.instruments);
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
    await this.begin();
    return (await this.registry.getMetricsAsJSON()) as unknown as MetricValues;
  }

  /**
   * process_* and nodejs_*: the names that client libraries share and dashboards use. From the first scrape on, because
   * the delay of the event loop is sampled by a timer, which wakes the process 100 times a second.
   */
  private async begin(): Promise<void> {
    if (this.isScraped) return;
    this.isScraped = true;
    collectDefaultMetrics({ register: this.registry });
    // Without a sample the delays would have no value.
    await sleep(FIRST_SAMPLES_MS);
  }

  /**
   * In the text format of Prometheus.
   *
   * @internal
   */
  async text(): Promise<string> {
    return addUp(await this.ofAll()).metrics();
  }
}

/** Combines the metrics of several processes in one registry, each by its own aggregation. */
export function addUp(values: MetricValues[]): Registry {
  return AggregatorRegistry.aggregate(values);
}
