import { All, Controller, Req, Res, UseGuards, UseInterceptors } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { GatewayKeyGuard } from '../auth/gateway-key.guard.js';
import { RequestLogInterceptor } from '../request-log/request-log.interceptor.js';
import { ROAD } from './gateway-http.adapter.js';
import { IdempotentCalls } from './idempotent-calls.js';
import { RouteGuard } from './route.guard.js';

/** `ANY /v1/*` and `ANY /p/<provider>/*`; the request gate leads both here. */
@ApiExcludeController()
@Controller()
@UseGuards(GatewayKeyGuard, RouteGuard)
@UseInterceptors(RequestLogInterceptor)
export class ProxyController {
  constructor(private readonly calls: IdempotentCalls) {}

  @All(ROAD)
  forward(@Req() req: Request, @Res() res: Response): Promise<void> {
    return this.calls.carry(req, res);
  }
}
