import { Injectable } from '@nestjs/common';
import { MetricsService } from '../../observability/metrics.service.js';
import { IssuerKeys } from './issuer-keys.service.js';

@Injectable()
export class TrustMetrics {
  constructor(keys: IssuerKeys, { instruments }: MetricsService) {
    instruments.gaugeBy(
      'max',
      'postern_identity_keys_age_seconds',
      'Age of the public keys of each issuer that trusts name, and of OIDC_ISSUER once a logout has needed them; +Inf if they were never read.',
      () => keys.ages().map(([issuer, age]) => [{ issuer }, age] as const),
      'issuer',
    );
  }
}
