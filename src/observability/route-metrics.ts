import { Injectable } from '@nestjs/common';
import { RoutesService } from '../routes/routes.service.js';
import { MetricsService } from './metrics.service.js';

/** Which targets of routes rest, as this process has seen them respond. */
@Injectable()
export class RouteMetrics {
  constructor(routes: RoutesService, { instruments }: MetricsService) {
    instruments.gaugeBy(
      'max',
      'postern_route_target_resting',
      '1 if the target of a route gets no calls at the moment, because it refused calls or failed; 0 if it does.',
      () =>
        routes.resting().map(({ route, provider, rests }) => [{ route, provider }, Number(rests)] as const),
      'route',
      'provider',
    );
  }
}
