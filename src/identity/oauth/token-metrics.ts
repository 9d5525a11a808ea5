import { Injectable } from '@nestjs/common';
import { MetricsService } from '../../observability/metrics.service.js';
import { OauthGrants } from './oauth-grants.js';

@Injectable()
export class TokenMetrics {
  constructor(grants: OauthGrants, { instruments }: MetricsService) {
    instruments.counter(
      'postern_tokens_issued_total',
      'Requests for a token: issued; rejected, what was presented was not accepted; pending, nobody has confirmed it yet; busy, there were too many; unavailable, Postgres or the issuer was.',
      () =>
        grants.every.flatMap(({ name: grant, counts }) =>
          [...counts].map(([result, count]) => [{ grant, result }, count] as const),
        ),
      'grant',
      'result',
    );
  }
}
