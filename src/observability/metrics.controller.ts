import { Controller, Get, Res, UseFilters, UseGuards } from '@nestjs/common';
import { ApiExcludeController } from '../admin/api-decorators.js';
import type { Response } from 'express';
import { AdminErrorFilter } from '../admin/admin-error.filter.js';
import { AdminTokenGuard } from '../admin/admin-token.guard.js';
import { MetricsService } from './metrics.service.js';

/** For Prometheus, with the admin token as its `authorization` credentials. */
@ApiExcludeController()
@Controller('metrics')
@UseGuards(AdminTokenGuard)
@UseFilters(AdminErrorFilter)
export class MetricsController {
  constructor(private readonly metrics: MetricsService) {}

  @Get()
  async scrape(@Res() res: Response): Promise<void> {
    const text = await this.metrics.text();
    res.set({ 'content-type': this.metrics.contentType, 'cache-control': 'no-store' }).end(text);
  }
}
