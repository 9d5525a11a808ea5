import type { Ready } from './startup-messages.js';
import type { Settings } from '../config/settings.js';
import type { MetricValues } from '../observability/metrics.service.js';

/** What the primary tells a worker. */
export type Order =
  /** Serve with these settings; the environment they came from may say something else by now. */
  | { start: Settings }
  | 'stop'
  /** Tell your figures, under the number of this question. */
  | { tellMetrics: number }
  /** Those of all workers, as asked for under this number. */
  | { allMetrics: { request: number; figures: MetricValues[] } };

/** What a worker tells the primary. */
export type Word =
  /** It listens: what was said before is lost. */
  | 'here'
  | { ready: Ready }
  | { firstKey: string }
  | 'no key'
  | { metrics: { question: number; figures: MetricValues } }
  /** It wants the figures of all workers, under this number of its own. */
  | { wantsMetrics: number }
  /** It cannot go on, for this reason, in words for an operator. */
  | { fault: string };
