import { Controller, Get, Param, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { ApiExcludeController } from '../../admin/api-decorators.js';
import { PublicRoute } from '../../platform/public-route.js';
import { OauthEndpoints } from './oauth-endpoints.service.js';

const METADATA = '/.well-known/oauth-authorization-server';

/** The endpoints for tokens at the root. Below `/v1` and `/p/<provider>`, GatewayHttpAdapter asks OauthEndpoints itself. */
@ApiExcludeController()
@PublicRoute()
@Controller()
export class OauthController {
  constructor(private readonly endpoints: OauthEndpoints) {}

  @Get('.well-known/oauth-authorization-server')
  metadata(@Req() req: Request, @Res() res: Response): Promise<void> {
    return this.endpoints.atRoot(req, res, METADATA);
  }

  /** Where RFC 8414 3.1 puts it for an issuer with a path. */
  @Get('.well-known/oauth-authorization-server/p/:provider')
  metadataOf(@Req() req: Request, @Res() res: Response, @Param('provider') provider: string): Promise<void> {
    return this.endpoints.atRoot(req, res, METADATA, provider);
  }

  @Post('oauth/token')
  token(@Req() req: Request, @Res() res: Response): Promise<void> {
    return this.endpoints.atRoot(req, res, '/oauth/token');
  }

  @Post('oauth/revoke')
  revoke(@Req() req: Request, @Res() res: Response): Promise<void> {
    return this.endpoints.atRoot(req, res, '/oauth/revoke');
  }
}
