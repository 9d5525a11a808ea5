import { Module } from '@nestjs/common';
import { RegressionsModule } from '../regressions/regressions.module.js';
import { RequestLogModule } from '../request-log/request-log.module.js';
import { UnknownCostAlert } from './unknown-cost-alert.service.js';
import { UsageRollup } from './usage-rollup.service.js';

/** Keeps the half-hourly sums in the gateway; a command only reads them. */
@Module({
  imports: [RegressionsModule, RequestLogModule],
  providers: [UsageRollup, UnknownCostAlert],
  exports: [UsageRollup]
})
export class UsageRollupModule {}
