import { Injectable } from '@nestjs/common';
import { DurationMetric, Durations } from '../../observability/durations.js';
import { MetricsService } from '../../observability/metrics.service.js';
import { LedgerService } from './ledger.service.js';

const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** Metrics of limits and budgets. */
@Injectable()
export class LimitMetrics {
  constructor(ledger: LedgerService, { instruments: on }: MetricsService) {
    const durations = new Durations(BOUNDS);
    ledger.exchange.onTimed = (ms) => durations.add(ms);
    on.counter(
      'postern_limit_exchanges_total',
      'Exchanges of limits and budgets with Postgres.',
      () => [
        [{ result: 'ok' }, ledger.exchange.counts.ok],
        [{ result: 'failed' }, ledger.exchange.counts.failed],
      ],
      'result',
    );
    on.histogram(
      new DurationMetric('postern_limit_exchange_seconds', 'Duration of exchanges that succeeded.', () => [
        [{}, durations],
      ]),
    );
    on.gauge(
      'postern_limit_waiting_calls',
      'Calls that wait for an exchange of limits.',
      () => ledger.waitingCalls,
    );
    on.gaugeBy(
      'max',
      'postern_budgets_exhausted',
      'Budgets in use by a process of which nothing was left at its last exchange.',
      () => ledger.exhaustedBudgets,
    );
  }
}
