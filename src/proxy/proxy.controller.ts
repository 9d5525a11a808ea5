import { All, Controller, Req, Res, UseFilters, UseGuards, UseInterceptors } from '@nestjs/common';
import type { Request, Response } from 'express';
import { GatewayKeyGuard } from '../keys/gateway-key.guard.js';
import { RequestLogInterceptor } from '../request-log/request-log.interceptor.js';
import { Forwarder } from './forwarder.js';
import { GatewayErrorFilter } from './gateway-error.filter.js';
import { ROAD } from './gateway-http.adapter.js';
import { RouteGuard } from './route.guard.js';

/** `ANY /v1/*` and `ANY /p/<provider>/*`; the request gate leads both here. */
@Controller()
@UseGuards(GatewayKeyGuard, RouteGuard)
@UseInterceptors(RequestLogInterceptor)
@UseFilters(GatewayErrorFilter)
export class ProxyController {
  constructor(private readonly forwarder: Forwarder) {}

  @All(ROAD)
  forward(@Req() req: Request, @Res() res: Response): Promise<void> {
    return this.forwarder.forward(req, res);
  }
}
