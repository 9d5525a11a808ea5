import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DatabaseRegression } from '../regressions/database-regression.entity.js';
import { KeysModule } from '../keys/keys.module.js';
import { LimitsAdminModule } from '../limits/limits-admin.module.js';
import { ObservabilityModule } from '../observability/observability.module.js';
import { PoliciesAdminModule } from '../policies-by-url/policies-admin.module.js';
import { PricesModule } from '../pricing/prices.module.js';
import { ProviderHealthModule } from '../provider-health/provider-health.module.js';
import { ProvidersModule } from '../providers/providers.module.js';
import { SinksAdminModule } from '../sinks/sinks-admin.module.js';
import { WebhooksAdminModule } from '../webhooks/webhooks-admin.module.js';
import { AttentionController } from './attention.controller.js';
import { AttentionService } from './attention.service.js';

/** What needs somebody, from all modules. */
@Module({
  imports: [
    TypeOrmModule.forFeature([DatabaseRegression]),
    KeysModule,
    LimitsAdminModule,
    ObservabilityModule,
    PoliciesAdminModule,
    PricesModule,
    ProviderHealthModule,
    ProvidersModule,
    SinksAdminModule,
    WebhooksAdminModule
  ],
  controllers: [AttentionController],
  providers: [AttentionService]
})
export class AttentionModule {}
