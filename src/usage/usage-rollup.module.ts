import { Module } from '@nestjs/common';
import { ConfigModule } from '../config/config.module.js';
import { RequestLogModule } from '../request-log/request-log.module.js';
import { usageSettings } from './usage.settings.js';
import { UsageRollup } from './usage-rollup.service.js';

/** Keeps the half-hourly sums in the gateway; a command only reads them. */
@Module({
  imports: [ConfigModule.forFeature(usageSettings), RequestLogModule],
  providers: [UsageRollup]
})
export class UsageRollupModule {}
