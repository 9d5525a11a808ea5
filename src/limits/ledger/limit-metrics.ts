import { Injectable } from '@nestjs/common';
import { DurationMetric } from '../../observability/durations.js';
import { MetricsService } from '../../observability/metrics.service.js';
import { ReadinessService } from '../../observability/readiness.service.js';
import { LedgerService } from './ledger.service.js';
import { patience } from '../../platform/patience.js';

/** As long as Postgres may be silent before the readiness says so. */
const DEGRADED = patience('exchanges before degraded', 5_000);

/** Metrics of limits and budgets, and their part of the readiness. */
@Injectable()
export class LimitMetrics {
  constructor(ledger: LedgerService, { instruments: on }: MetricsService, readiness: ReadinessService) {
    readiness.addCheck(() =>
      Math.max(ledger.exchange.failingMs, ledger.hotExchange.failingMs) > DEGRADED.ms
        ? ['limits and budgets are not exchanged with Postgres']
        : [],
    );
    on.counter(
      'postern_limit_exchanges_total',
      'Exchanges of limits and budgets with Postgres.',
      () => [
        [{ result: 'ok' }, ledger.exchange.counts.ok + ledger.hotExchange.counts.ok],
        [{ result: 'failed' }, ledger.exchange.counts.failed + ledger.hotExchange.counts.failed],
      ],
      'result',
    );
    on.histogram(
      new DurationMetric(
        'postern_limit_exchange_seconds',
        'Duration of exchanges that succeeded.',
        [],
        () => [[{}, ledger.exchange.durations]],
      ),
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
