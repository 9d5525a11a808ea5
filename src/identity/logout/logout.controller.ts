import { Controller, HttpCode, Logger, NotFoundException, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { AdminGuard } from '../../admin/admin.guard.js';
import { ApiOkResponse, ApiOperation, ApiTags } from '../../admin/api-decorators.js';
import { ApiErrors } from '../../admin/api-errors.js';
import { describeError } from '../../errors/describe-error.js';
import { PublicRoute } from '../../platform/public-route.js';
import { OauthError, readParameters } from '../oauth/parameters.js';
import { BackChannelLogout } from './logout.service.js';

/** Where the OpenID provider says that somebody has signed out. Register it there as the back-channel logout URI. */
@ApiTags('Session')
@PublicRoute()
@Controller('admin/v1/oidc/logout')
export class LogoutController {
  private readonly logger = new Logger('SignIn');

  constructor(
    private readonly logouts: BackChannelLogout,
    private readonly guard: AdminGuard,
  ) {}

  @Post()
  @HttpCode(200)
  @ApiOperation({
    operationId: 'backChannelLogout',
    summary: 'Where the OpenID provider says that somebody has signed out',
    description:
      'OpenID Connect Back-Channel Logout 1.0: a form with `logout_token`. 400 has no reason; the log of the gateway has it.',
  })
  @ApiOkResponse({ description: 'What began in this session at the provider has ended.' })
  @ApiErrors(404)
  async logout(@Req() req: Request, @Res() res: Response): Promise<void> {
    if (!this.logouts.isOn) throw new NotFoundException('Single sign-on is not configured (OIDC_ISSUER).');
    // OpenID Connect Back-Channel Logout 1.0, 2.8.
    res.set('cache-control', 'no-store');
    const status = await this.statusOf(req, res);
    if (status === 200) return void res.status(200).end();
    if (status !== 400) res.set('retry-after', '5');
    // The same for every reason.
    res.status(status).json({ error: status === 400 ? 'invalid_request' : 'temporarily_unavailable' });
  }

  private async statusOf(req: Request, res: Response): Promise<number> {
    try {
      const token = (await readParameters(req, res)).required('logout_token');
      const result = await this.logouts.logout(token, this.guard.addressOf(req));
      return { done: 200, rejected: 400, busy: 429, unavailable: 503 }[result];
    } catch (error) {
      if (error instanceof OauthError) return error.status === 413 ? 413 : 400;
      this.logger.warn(`A logout failed: ${describeError(error)}`);
      return 503;
    }
  }
}
