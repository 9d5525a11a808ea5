import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { LedgerModule } from '../limits/ledger/ledger.module.js';
import { LimitsAdminModule } from '../limits/limits-admin.module.js';
import { RefusalsModule } from '../refusals/refusals.module.js';
import { RequestsModule } from '../requests/requests.module.js';
import { UsageModule } from '../usage/usage.module.js';
import { SelfController } from './self.controller.js';
import { SelfRateGuard } from './self-rate.guard.js';
import { SelfService } from './self.service.js';

/** What a gateway key may read about itself. */
@Module({
  imports: [AuthModule, LedgerModule, LimitsAdminModule, RefusalsModule, RequestsModule, UsageModule],
  controllers: [SelfController],
  providers: [SelfService, SelfRateGuard]
})
export class SelfModule {}
