import { Controller, Get, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Response } from 'express';
import { type Readiness, ReadinessService } from './readiness.service.js';

/** For load balancers and orchestrators. Open to all: it tells states, never values. */
@ApiExcludeController()
@Controller('health')
export class HealthController {
  constructor(private readonly readiness: ReadinessService) {}

  /** The process runs and its event loop turns. */
  @Get('live')
  live(): { status: string } {
    return { status: 'ok' };
  }

  /** 200 while calls can be served, else 503; and what is amiss. */
  @Get('ready')
  async ready(@Res({ passthrough: true }) res: Response): Promise<Readiness> {
    const readiness = await this.readiness.now();
    if (readiness.status === 'unavailable') res.status(503).setHeader('retry-after', '1');
    return readiness;
  }
}
