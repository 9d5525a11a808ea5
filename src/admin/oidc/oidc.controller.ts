import { Controller, Get, Header, HttpException, Logger, Query, Req, Res, UseFilters } from '@nestjs/common';
import type { Request, Response } from 'express';
import { InjectSettings } from '../../config/config.module.js';
import { required, type Settings } from '../../config/settings.js';
import { describeError } from '../../errors/describe-error.js';
import { AdminErrorFilter } from '../admin-error.filter.js';
import { AdminGuard } from '../admin.guard.js';
import { ApiOkResponse, ApiOperation, ApiResponse, ApiTags } from '../api-decorators.js';
import { ApiErrors } from '../api-errors.js';
import { PAGE_HEADERS } from '../page-headers.js';
import { sessionCookie } from '../sessions/session-cookie.js';
import { SessionsService } from '../sessions/sessions.service.js';
import { PublicRoute } from '../../platform/public-route.js';
import { FlowCookie } from './flow-cookie.js';
import { NoRole } from './no-role.js';
import { continuePage, failurePage, noRolePage } from './oidc-page.js';
import { type OidcState, oidcStateSchema, returnTo as returnToSchema } from './oidc.schema.js';
import { OidcService } from './oidc.service.js';

/** The provider does not say when a user is gone, so these sessions are shorter. */
const SESSION_HOURS = 8;
const HTML = { content: { 'text/html': { schema: { type: 'string' as const } } } };

/** Signing in at an OpenID provider. Open to all. */
@ApiTags('Session')
@PublicRoute()
@Controller('admin/v1/oidc')
@UseFilters(AdminErrorFilter)
export class OidcController {
  private readonly logger = new Logger('Admin');
  private readonly cookie: FlowCookie;

  constructor(
    @InjectSettings() private readonly env: Settings,
    private readonly guard: AdminGuard,
    private readonly oidc: OidcService,
    private readonly sessions: SessionsService,
  ) {
    this.cookie = new FlowCookie(env.publicUrl ?? '', required(env, 'adminToken'));
  }

  @Get()
  @Header('Cache-Control', 'no-store')
  @ApiOperation({ operationId: 'getSingleSignOn', summary: 'Get whether there is single sign-on' })
  @ApiOkResponse({ standardSchema: oidcStateSchema, description: 'Whether there is single sign-on.' })
  get(): OidcState {
    return { enabled: this.oidc.isOn };
  }

  @Get('start')
  @ApiOperation({ operationId: 'startSingleSignOn', summary: 'Sign in by single sign-on, in a browser' })
  @ApiResponse({ status: 302, description: 'To the provider.' })
  @ApiErrors(404)
  async start(
    @Query('return_to', { schema: returnToSchema }) returnTo: unknown,
    @Res() res: Response,
  ): Promise<void> {
    res.set({ ...PAGE_HEADERS, 'cache-control': 'no-store' });
    try {
      const { url, flow } = await this.oidc.begin('console', pageOf(returnTo));
      res.set('set-cookie', await this.cookie.set(flow)).redirect(302, url.href);
    } catch (error) {
      if (error instanceof HttpException) throw error;
      this.fail(res, 502, 'The sign-in provider cannot be reached. Try again later.', error);
    }
  }

  @Get('callback')
  @ApiOperation({
    operationId: 'finishSingleSignOn',
    summary: 'Where the provider sends the browser back to',
    description:
      'Begins a session that ends after 8 hours, and shows a page that leads to the console; for a request of a client, to the page where it is confirmed.',
  })
  @ApiOkResponse({ description: 'Signed in.', ...HTML })
  @ApiErrors(404)
  async callback(@Req() req: Request, @Res() res: Response): Promise<void> {
    res.set({ ...PAGE_HEADERS, 'cache-control': 'no-store', 'set-cookie': this.cookie.remove() });
    const flow = await this.cookie.of(req);
    if (flow === null)
      return this.fail(res, 400, 'This sign-in was started in another browser, or has expired.');
    try {
      const identity = await this.oidc.finish(req.originalUrl, flow);
      if (flow.purpose === 'device') return await this.oidc.confirmDevice(identity, flow.returnTo, req, res);
      const access = await this.oidc.accessOf(identity, this.guard.addressOf(req));
      await this.oidc.admission?.(identity);
      const secret = await this.sessions.begin(access, res, SESSION_HOURS, identity.sid);
      const cookie = sessionCookie(req, this.env.publicUrl, secret, SESSION_HOURS * 3_600);
      res.set('set-cookie', [this.cookie.remove(), cookie]).type('html').send(continuePage(flow.returnTo));
    } catch (error) {
      if (flow.purpose !== 'device') this.sessions.counts.singleSignOn.failed++;
      if (error instanceof NoRole) return void res.status(403).type('html').send(noRolePage(error));
      if (error instanceof HttpException) return this.fail(res, error.getStatus(), error.message);
      this.fail(res, 400, 'The sign-in provider did not confirm the sign-in. Try again.', error);
    }
  }

  private fail(res: Response, status: number, message: string, error?: unknown): void {
    if (error !== undefined) this.logger.warn(`Single sign-on failed: ${describeError(error)}`);
    res.status(status).type('html').send(failurePage(message));
  }
}

/** A page of the console of this gateway, so that nobody is led elsewhere. */
function pageOf(returnTo: unknown): string {
  const path = typeof returnTo === 'string' && returnTo.length <= 1_000 ? returnTo : '';
  return /^\/console(?:[/?][\x21-\x5b\x5d-\x7e]*)?$/.test(path) ? path : '/console';
}
