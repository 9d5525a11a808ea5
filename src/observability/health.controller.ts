import { Controller, Get, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiResponse } from '../admin/api-decorators.js';
import type { Response } from 'express';
import { z } from 'zod';
import { ApiGroup } from '../admin/admin-controller.js';
import { PublicRoute } from '../platform/public-route.js';
import { type Readiness, ReadinessService } from './readiness.service.js';

const liveSchema = z
  .strictObject({ status: z.literal('ok').meta({ description: 'Always `ok`.', example: 'ok' }) })
  .meta({ id: 'Liveness' });

const readinessSchema = z
  .strictObject({
    status: z.enum(['ok', 'degraded', 'unavailable']).meta({
      description: '`degraded`: calls are served, but not everything works.',
      example: 'degraded',
    }),
    reasons: z.array(z.string()).meta({
      description: 'What does not work, for operators.',
      example: ['Postgres is unavailable; cached keys still work'],
    }),
  })
  .meta({ id: 'Readiness' });

/** Health checks for load balancers and orchestrators. Open to all: it reports states, never values. */
@ApiGroup({ name: 'Health', description: 'For load balancers and orchestrators; without a token.' })
@PublicRoute()
@Controller('health')
export class HealthController {
  constructor(private readonly readiness: ReadinessService) {}

  /** 200 while the process runs and its event loop is not blocked. */
  @Get('live')
  @ApiOperation({ operationId: 'getLiveness', summary: 'Report that the process runs' })
  @ApiOkResponse({ standardSchema: liveSchema, description: 'It runs.' })
  live(): { status: string } {
    return { status: 'ok' };
  }

  /** 200 while calls can be served, else 503, with the reasons. */
  @Get('ready')
  @ApiOperation({ operationId: 'getReadiness', summary: 'Report whether calls can be served' })
  @ApiOkResponse({ standardSchema: readinessSchema, description: 'Calls are served.' })
  @ApiResponse({
    status: 503,
    standardSchema: readinessSchema,
    description: 'No calls are served; with `Retry-After`.',
    example: { status: 'unavailable', reasons: ['shutting down'] },
  })
  async ready(@Res({ passthrough: true }) res: Response): Promise<Readiness> {
    const readiness = await this.readiness.now();
    if (readiness.status === 'unavailable') res.status(503).setHeader('retry-after', '1');
    return readiness;
  }
}
