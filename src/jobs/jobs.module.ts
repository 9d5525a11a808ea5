import { Global, Module } from '@nestjs/common';
import { SETTINGS } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { ObservabilityModule } from '../observability/observability.module.js';
import { PricesModule } from '../pricing/prices.module.js';
import { ProvidersModule } from '../providers/providers.module.js';
import { JOB_KEEPER } from '../request-log/writer/job-keeper.js';
import { JobChecks } from './job-checks.service.js';
import { ProviderJobKeeper } from './job-keeper.service.js';
import { JobMetrics } from './job-metrics.js';
import { JobSettlement } from './job-settlement.service.js';
import { JobsAdminModule } from './jobs-admin.module.js';

/** Follows jobs until their usage is in the request log. Global for the log, which notes them. */
@Global()
@Module({
  imports: [JobsAdminModule, ProvidersModule, PricesModule, ObservabilityModule],
  providers: [
    JobSettlement,
    ProviderJobKeeper,
    JobChecks,
    JobMetrics,
    {
      provide: JOB_KEEPER,
      inject: [SETTINGS, ProviderJobKeeper],
      useFactory: (env: Settings, keeper: ProviderJobKeeper) => (env.jobs === 'on' ? keeper : null)
    }
  ],
  exports: [JOB_KEEPER]
})
export class JobsModule {}
