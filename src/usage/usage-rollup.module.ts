import { Module } from '@nestjs/common';
import { PricesModule } from '../pricing/prices.module.js';
import { RequestLogModule } from '../request-log/request-log.module.js';
import { UsageRollup } from './usage-rollup.service.js';

/** Keeps the half-hourly sums in the gateway; a command only reads them. */
@Module({
  imports: [PricesModule, RequestLogModule],
  providers: [UsageRollup]
})
export class UsageRollupModule {}
