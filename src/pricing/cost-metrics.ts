import { Injectable } from '@nestjs/common';
import { MetricsService } from '../observability/metrics.service.js';
import { BatchPricer, type CostFigures } from './batch-pricer.js';

const NANO = 1e9;

/** Costs by provider. Rounded to a double: the request log has the exact amounts. */
@Injectable()
export class CostMetrics {
  constructor(pricer: BatchPricer, { instruments }: MetricsService) {
    const by = (value: (figures: CostFigures) => number) => () =>
      [...pricer.figures].map(([provider, figures]) => [{ provider }, value(figures)] as const);
    instruments.counter(
      'postern_cost_usd_total',
      'What the calls cost in USD, as far as it is known. Costs that are filled in later are not included.',
      by(({ nano }) => Number(nano) / NANO),
      'provider',
    );
    instruments.counter(
      'postern_saved_usd_total',
      'What calls from the response cache would have cost in USD, as far as it is known.',
      by(({ saved }) => Number(saved) / NANO),
      'provider',
    );
    instruments.counter(
      'postern_unpriced_calls_total',
      'Calls with tokens or other units that had no cost when they were logged.',
      by(({ unpriced }) => unpriced),
      'provider',
    );
    instruments.counter(
      'postern_unknown_calls_total',
      'Calls whose usage was not read to the end, so that their cost is not known, by their outcome.',
      () =>
        [...pricer.figures].flatMap(([provider, { unknown }]) =>
          [...unknown].map(([reason, count]) => [{ provider, reason }, count] as const),
        ),
      'provider',
      'reason',
    );
  }
}
