import { Module } from '@nestjs/common';
import { AdminModule } from '../admin/admin.module.js';
import { IdempotencyModule } from '../idempotency/idempotency.module.js';
import { AuthModule } from '../auth/auth.module.js';
import { ProxyModule } from '../proxy/proxy.module.js';
import { RegressionsModule } from '../regressions/regressions.module.js';
import { RequestLogModule } from '../request-log/request-log.module.js';
import { RoutesModule } from '../routes/routes.module.js';
import { CallMetrics } from './call-metrics.js';
import { HealthController } from './health.controller.js';
import { MetricsController } from './metrics.controller.js';
import { MetricsService } from './metrics.service.js';
import { ReadinessService } from './readiness.service.js';
import { RouteMetrics } from './route-metrics.js';
import { ShutdownService } from './shutdown.service.js';
import { StateMetrics } from './state-metrics.js';
import { TracingService } from './tracing.service.js';

@Module({
  imports: [
    AdminModule,
    ProxyModule,
    RegressionsModule,
    RequestLogModule,
    AuthModule,
    IdempotencyModule,
    RoutesModule
  ],
  controllers: [HealthController, MetricsController],
  providers: [
    ShutdownService,
    ReadinessService,
    CallMetrics,
    RouteMetrics,
    StateMetrics,
    MetricsService,
    TracingService
  ],
  exports: [MetricsService, ReadinessService, ShutdownService]
})
export class ObservabilityModule {}
