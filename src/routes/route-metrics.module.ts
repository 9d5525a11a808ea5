import { Module } from '@nestjs/common';
import { ObservabilityModule } from '../observability/observability.module.js';
import { RouteMetrics } from './route-metrics.js';
import { RoutesModule } from './routes.module.js';

/** Only in the gateway: a command has no calls. */
@Module({ imports: [RoutesModule, ObservabilityModule], providers: [RouteMetrics] })
export class RouteMetricsModule {}
