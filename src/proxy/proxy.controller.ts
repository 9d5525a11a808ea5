import { All, Controller, Req, Res, UseGuards, UseInterceptors } from '@nestjs/common';
import { ApiExcludeController } from '../admin/api-decorators.js';
import type { Request, Response } from 'express';
import { GatewayKeyGuard } from '../auth/gateway-key.guard.js';
import { RequestLogInterceptor } from './stages/request-log.interceptor.js';
import { AdmissionService } from './stages/admission.service.js';
import { RouteGuard } from './stages/route.guard.js';

/** `ANY /v1/*` and `ANY /p/<provider>/*`. The destination is read from `req.target`, never from Express's decoded path. */
@ApiExcludeController()
@Controller()
@UseGuards(GatewayKeyGuard, RouteGuard)
@UseInterceptors(RequestLogInterceptor)
export class ProxyController {
  constructor(private readonly admission: AdmissionService) {}

  @All(['v1/{*path}', 'p/{*path}'])
  forward(@Req() { call }: Request, @Res() _res: Response): Promise<void> {
    return this.admission.forward(call);
  }
}
