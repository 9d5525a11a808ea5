import { Injectable } from '@nestjs/common';
import { DurationMetric } from '../../observability/durations.js';
import { MetricsService } from '../../observability/metrics.service.js';
import { LedgerService } from './ledger.service.js';

/** Metrics of limits and budgets. */
@Injectable()
export class LimitMetrics {
  constructor(ledger: LedgerService, { instruments: on }: MetricsService) {
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
        [{}, ledger.exchange.durations],
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
