import type { KeysFound, Ready } from './startup-messages.js';
import type { Settings } from '../../config/settings.js';
import type { MetricValues } from '../../observability/metrics.service.js';

/** A message from the primary to a worker. */
export type PrimaryMessage =
  /** Serve with these settings: the environment may have changed since the primary read it. */
  | { start: Settings }
  | 'stop'
  /** Send your metrics with this request number. */
  | { sendMetrics: number }
  /** The metrics of all workers, for the request with this number. */
  | { allMetrics: { request: number; values: MetricValues[] } };

/** A message from a worker to the primary. */
export type WorkerMessage =
  /** The worker receives messages; earlier ones were lost. */
  | 'listening'
  | { ready: Ready }
  /** Postgres was reached. */
  | { database: { lacksProvider: boolean } }
  | { keys: KeysFound }
  | 'no gateway key'
  | { metrics: { request: number; values: MetricValues } }
  /** Requests the metrics of all workers, under a number of the worker. */
  | { requestAllMetrics: number }
  /** The worker is about to exit; the message is for operators. */
  | { error: string };
