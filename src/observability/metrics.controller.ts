import { Controller, Get, Res, UseFilters, UseGuards } from '@nestjs/common';
import { ApiBearerAuth, ApiOkResponse, ApiOperation } from '../admin/api-decorators.js';
import type { Response } from 'express';
import { ADMIN_TOKEN_SCHEME, ApiGroup } from '../admin/admin-controller.js';
import { AdminErrorFilter } from '../admin/admin-error.filter.js';
import { Roles } from '../admin/access/role.js';
import { AdminGuard } from '../admin/admin.guard.js';
import { ApiErrors } from '../admin/api-errors.js';
import { MetricsService } from './metrics.service.js';

/** For Prometheus, with a token of the role `metrics` as its `authorization` credentials. */
@ApiGroup({ name: 'Metrics', description: 'For Prometheus.' })
@ApiBearerAuth(ADMIN_TOKEN_SCHEME)
@ApiErrors(401, 403)
@Controller('metrics')
@UseGuards(AdminGuard)
@UseFilters(AdminErrorFilter)
export class MetricsController {
  constructor(private readonly metrics: MetricsService) {}

  @Get()
  @Roles(['viewer', 'metrics'])
  @ApiOperation({ operationId: 'getMetrics', summary: 'Get the metrics in the Prometheus text format' })
  @ApiOkResponse({
    description: 'The metrics.',
    content: { 'text/plain': { schema: { type: 'string', example: 'postern_open_calls 3\n' } } },
  })
  async scrape(@Res() res: Response): Promise<void> {
    const text = await this.metrics.text();
    res.set({ 'content-type': this.metrics.contentType, 'cache-control': 'no-store' }).end(text);
  }
}
