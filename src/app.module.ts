import { type DynamicModule, Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { ADMIN_MODULES } from './admin-modules.js';
import { ConfigModule } from './config/config.module.js';
import { ConsoleModule } from './console/console.module.js';
import type { Settings } from './config/settings.js';
import { DatabaseModule } from './database/database.module.js';
import { LimitsModule } from './limits/limits.module.js';
import { ObservabilityModule } from './observability/observability.module.js';
import { PricingModule } from './pricing/pricing.module.js';
import { ProxyModule } from './proxy/proxy.module.js';
import { SelfModule } from './self/self.module.js';
import { SinksModule } from './sinks/sinks.module.js';
import { SystemModule } from './system/system.module.js';
import { UsageRollupModule } from './usage/usage-rollup.module.js';
import { WebhooksModule } from './webhooks/webhooks.module.js';

/**
 * The whole gateway. ProxyModule comes before the other modules with routes, so that its route is matched first on every
 * call. A module of your own may stand anywhere.
 */
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
        LimitsModule,
        ...ADMIN_MODULES,
        ConsoleModule,
        PricingModule,
        UsageRollupModule,
        WebhooksModule,
        SinksModule,
        SelfModule,
        SystemModule,
        ObservabilityModule
      ]
    };
  }
}
