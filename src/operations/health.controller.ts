import { Controller, Get, Res } from '@nestjs/common';
import type { Response } from 'express';
import { DatabaseService } from '../database/database.service.js';
import { ShutdownService } from './shutdown.service.js';

/** For load balancers and orchestrators. Open to all: it tells states, never values. */
@Controller('health')
export class HealthController {
  constructor(
    private readonly database: DatabaseService,
    private readonly shutdown: ShutdownService,
  ) {}

  /** The process runs and its event loop turns. */
  @Get('live')
  live(): { status: string } {
    return { status: 'ok' };
  }

  /** 200 when calls can be served, else 503 and why. */
  @Get('ready')
  ready(@Res({ passthrough: true }) res: Response): { status: string; reasons: string[] } {
    const reasons: string[] = [];
    if (this.shutdown.draining) reasons.push('shutting down');
    if (this.database.notReady !== null) reasons.push('the database is not ready');
    if (reasons.length > 0) res.status(503).setHeader('retry-after', '1');
    return { status: reasons.length === 0 ? 'ok' : 'unavailable', reasons };
  }
}
