import { Module } from '@nestjs/common';
import { ConfigModule } from '../config/config.module.js';
import { KeysModule } from '../keys/keys.module.js';
import { RequestsModule } from '../requests/requests.module.js';
import { UsageController } from './usage.controller.js';
import { UsageService } from './usage.service.js';
import { usageSettings } from './usage.settings.js';
import { UsageTotals } from './usage-totals.js';

/** Adds up calls, tokens and costs. */
@Module({
  imports: [ConfigModule.forFeature(usageSettings), KeysModule, RequestsModule],
  controllers: [UsageController],
  providers: [UsageTotals, UsageService],
  exports: [UsageTotals, UsageService]
})
export class UsageModule {}
