import { Module } from '@nestjs/common';
import { ObservabilityModule } from '../observability/observability.module.js';
import { PoliciesModule } from '../proxy/policies/policies.module.js';
import { DecisionLog, Rules } from './decision/rule.js';
import { UrlPolicy } from './decision/url-policy.js';
import { PoliciesAdminModule } from './policies-admin.module.js';
import { PolicyDirectory } from './policy-directory.service.js';
import { PolicyHealth } from './policy-health.service.js';
import { PolicyMetrics } from './policy-metrics.js';

/** Asks a company's own filter, by its URL, whether a call is forwarded. */
@Module({
  imports: [PoliciesModule, PoliciesAdminModule, ObservabilityModule],
  providers: [
    UrlPolicy,
    PolicyHealth,
    PolicyMetrics,
    { provide: Rules, useExisting: PolicyDirectory },
    { provide: DecisionLog, useExisting: PolicyHealth }
  ]
})
export class PoliciesByUrlModule {}
