import { type DynamicModule, Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { AdminModule } from './admin/admin.module.js';
import { AuditModule } from './audit/audit.module.js';
import { ConfigModule } from './config/config.module.js';
import type { Settings } from './config/settings.js';
import { DatabaseModule } from './database/database.module.js';
import { KeysModule } from './keys/keys.module.js';
import { LimitsModule } from './limits/limits.module.js';
import { ObservabilityModule } from './observability/observability.module.js';
import { PricingModule } from './pricing/pricing.module.js';
import { ProbeModule } from './proxy/upstream/probe.module.js';
import { ProvidersModule } from './providers/providers.module.js';
import { ProxyModule } from './proxy/proxy.module.js';
import { RequestsModule } from './requests/requests.module.js';
import { TeamsModule } from './teams/teams.module.js';
import { UsageModule } from './usage/usage.module.js';

/** The whole gateway. ProxyModule comes first: its route is matched first on every call. */
@Module({})
export class AppModule {
  static forSettings(settings: Settings): DynamicModule {
    return {
      module: AppModule,
      imports: [
        ConfigModule.forSettings(settings),
        DatabaseModule,
        ScheduleModule.forRoot(),
        ProxyModule,
        ProbeModule,
        AdminModule,
        TeamsModule,
        KeysModule,
        ProvidersModule,
        RequestsModule,
        UsageModule,
        AuditModule,
        LimitsModule,
        ObservabilityModule,
        PricingModule
      ]
    };
  }
}
