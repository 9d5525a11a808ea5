import { type DynamicModule, Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { ADMIN_MODULES } from './admin-modules.js';
import { AttentionModule } from './attention/attention.module.js';
import { AuthModule } from './auth/auth.module.js';
import { ConfigModule, POSTERN_OPTIONS } from './config/config.module.js';
import type { PosternOptions } from './config/env.js';
import { type Feature, featureModule } from './config/features.js';
import { ConsoleModule } from './console/console.module.js';
import { LogConsumersModule } from './consumers/log-consumers.module.js';
import { DatabaseModule } from './database/database.module.js';
import { LogoutModule } from './identity/logout/logout.module.js';
import { SignInModule } from './identity/sign-in/sign-in.module.js';
import { TrustsModule } from './identity/trusts/trusts.module.js';
import { JobsModule } from './jobs/jobs.module.js';
import { KeysModule } from './keys/keys.module.js';
import { LimitsModule } from './limits/limits.module.js';
import { ObservabilityModule } from './observability/observability.module.js';
import { LostChangesModule } from './lost-changes/lost-changes.module.js';
import { PoliciesByUrlModule } from './policies-by-url/policies-by-url.module.js';
import { PricingModule } from './pricing/pricing.module.js';
import { PoliciesModule } from './proxy/policies/policies.module.js';
import { ProviderHealthModule } from './provider-health/provider-health.module.js';
import { ProxyModule } from './proxy/proxy.module.js';
import { RefusalCountingModule } from './refusals/refusal-counting.module.js';
import { RequestLogModule } from './request-log/request-log.module.js';
import { ServingModule } from './runtime/serving.module.js';
import { SelfModule } from './self/self.module.js';
import { SinksModule } from './sinks/sinks.module.js';
import { SystemModule } from './system/system.module.js';
import { UsageRollupModule } from './usage/usage-rollup.module.js';
import { WebhooksModule } from './webhooks/webhooks.module.js';

/** What modules of an application may inject. */
const PUBLIC = [
  AuthModule,
  KeysModule,
  LogConsumersModule,
  ObservabilityModule,
  PoliciesModule,
  RequestLogModule
];

/**
 * The whole gateway, in an application's root module.
 *
 *     @Module({ imports: [PosternModule.forRoot(), QuotasModule] })
 *     export class AppModule {}
 *
 * Global: what modules may inject needs no import.
 */
@Module({})
export class PosternModule {
  /** @param options settings; they win over the environment */
  static forRoot(options: PosternOptions = {}): DynamicModule {
    return {
      module: PosternModule,
      global: true,
      imports: [
        ConfigModule.forOptions(options),
        DatabaseModule,
        ScheduleModule.forRoot(),
        // Before the other modules with routes, so that its route is matched first on every call.
        ProxyModule,
        LimitsModule,
        PoliciesByUrlModule,
        ...ADMIN_MODULES,
        ConsoleModule,
        PricingModule,
        UsageRollupModule,
        WebhooksModule,
        ProviderHealthModule,
        RefusalCountingModule,
        JobsModule,
        LostChangesModule,
        TrustsModule,
        SignInModule,
        LogoutModule,
        SinksModule,
        SelfModule,
        SystemModule,
        AttentionModule,
        ServingModule,
        ...PUBLIC
      ],
      providers: [{ provide: POSTERN_OPTIONS, useValue: options }],
      exports: [...PUBLIC, ServingModule]
    };
  }

  /**
   * Declares what a module brings besides its providers, in the imports of that module.
   *
   *     @Module({ imports: [PosternModule.forFeature({ name: 'quotas', migrations: [AddQuotas1795000099000] })] })
   *
   * @throws Error for a name that cannot be that of a table
   */
  static forFeature(feature: Feature): DynamicModule {
    return featureModule(feature);
  }
}
