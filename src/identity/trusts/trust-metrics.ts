import { Injectable } from '@nestjs/common';
import { MetricsService } from '../../observability/metrics.service.js';
import { ExchangeService } from './exchange.service.js';
import { IssuerKeys } from './issuer-keys.service.js';

@Injectable()
export class TrustMetrics {
  constructor(exchanges: ExchangeService, keys: IssuerKeys, { instruments }: MetricsService) {
    instruments.counter(
      'postern_tokens_issued_total',
      'Requests for a token: issued; rejected, the identity token was not accepted; busy, there were too many; unavailable, Postgres or the issuer was.',
      () => [...exchanges.counts].map(([result, count]) => [{ grant: 'exchange', result }, count] as const),
      'grant',
      'result',
    );
    instruments.gaugeBy(
      'max',
      'postern_identity_keys_age_seconds',
      'Age of the public keys of each issuer that trusts name; +Inf if they were never read.',
      () => keys.ages().map(([issuer, age]) => [{ issuer }, age] as const),
      'issuer',
    );
  }
}
