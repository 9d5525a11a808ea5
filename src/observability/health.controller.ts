import { Controller, Get, Res } from '@nestjs/common';
import { ApiExcludeController } from '../admin/api-decorators.js';
import type { Response } from 'express';
import { type Readiness, ReadinessService } from './readiness.service.js';

/** Health checks for load balancers and orchestrators. Open to all: it reports states, never values. */
@ApiExcludeController()
@Controller('health')
export class HealthController {
  constructor(private readonly readiness: ReadinessService) {}

  /** 200 while the process runs and its event loop is not blocked. */
  @Get('live')
  live(): { status: string } {
    return { status: 'ok' };
  }

  /** 200 while calls can be served, else 503, with the reasons. */
  @Get('ready')
  async ready(@Res({ passthrough: true }) res: Response): Promise<Readiness> {
    const readiness = await this.readiness.now();
    if (readiness.status === 'unavailable') res.status(503).setHeader('retry-after', '1');
    return readiness;
  }
}
