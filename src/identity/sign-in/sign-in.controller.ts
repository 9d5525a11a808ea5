import { Controller, Get, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { ApiExcludeController } from '../../admin/api-decorators.js';
import { PublicRoute } from '../../platform/public-route.js';
import { OauthEndpoints } from '../oauth/oauth-endpoints.service.js';
import { MANAGED_SETTINGS } from './claude-code.service.js';
import { DEVICE_AUTHORIZATION } from './device-authorization.service.js';

/** The endpoints of sign-ins at the root. Below `/p/<provider>` and `/v1`, GatewayHttpAdapter asks OauthEndpoints itself. */
@ApiExcludeController()
@PublicRoute()
@Controller()
export class SignInController {
  constructor(private readonly endpoints: OauthEndpoints) {}

  @Post('oauth/device_authorization')
  start(@Req() req: Request, @Res() res: Response): Promise<void> {
    return this.endpoints.atRoot(req, res, DEVICE_AUTHORIZATION);
  }

  @Get('managed/settings')
  settings(@Req() req: Request, @Res() res: Response): Promise<void> {
    return this.endpoints.atRoot(req, res, MANAGED_SETTINGS);
  }
}
