import {
  Body,
  Controller,
  Delete,
  ForbiddenException,
  Get,
  Header,
  HttpCode,
  Post,
  Req,
  Res,
  UnauthorizedException,
  UseFilters,
  UseInterceptors,
  UsePipes,
} from '@nestjs/common';
import type { Request, Response } from 'express';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { TokenVerifier } from '../access/token-verifier.js';
import { ApiGroup } from '../admin-controller.js';
import { AdminErrorFilter } from '../admin-error.filter.js';
import { AdminGuard } from '../admin.guard.js';
import { ApiNoContentResponse, ApiOkResponse, ApiOperation } from '../api-decorators.js';
import { ApiErrors } from '../api-errors.js';
import { JsonBodyInterceptor } from '../json-body.interceptor.js';
import { AdminValidationPipe } from '../validation.pipe.js';
import { PublicRoute } from '../../platform/public-route.js';
import { mustBeFromConsole, mustNotBeCrossOrigin } from './same-origin.js';
import { sessionCookie, sessionCookieOf } from './session-cookie.js';
import { type SessionState, sessionStateSchema, type SignIn, signInSchema } from './session.schema.js';
import { MAX_HOURS, SessionsService } from './sessions.service.js';

/** Open to all, unlike other controllers of the admin API. */
@ApiGroup({ name: 'Session', description: 'Signing in and out of the console.' })
@PublicRoute()
@Controller('admin/v1/session')
@UseInterceptors(JsonBodyInterceptor)
@UsePipes(AdminValidationPipe)
@UseFilters(AdminErrorFilter)
@ApiErrors(400, 429, 503)
export class SessionController {
  constructor(
    @InjectSettings() private readonly env: Settings,
    private readonly guard: AdminGuard,
    private readonly tokens: TokenVerifier,
    private readonly sessions: SessionsService,
  ) {}

  @Get()
  @Header('Cache-Control', 'no-store')
  @ApiOperation({ operationId: 'getSession', summary: 'Get the session of this browser' })
  @ApiOkResponse({
    standardSchema: sessionStateSchema,
    description: 'The session, or null, and the time zone.',
  })
  async get(@Req() req: Request): Promise<SessionState> {
    const cookie = sessionCookieOf(req, this.env.publicUrl);
    const session = cookie && (await this.sessions.find(cookie, this.guard.addressOf(req)));
    if (!session) return { session: null, time_zone: this.env.reportTimezone };
    const { access, teams, createdAt, expiresAt } = session;
    return {
      session: {
        actor: access.actor.name,
        user_id: access.userId,
        role: access.role,
        teams,
        created_at: createdAt.toISOString(),
        expires_at: expiresAt.toISOString(),
      },
      time_zone: this.env.reportTimezone,
    };
  }

  /** A new session has a new cookie, and ends the one that the browser had. */
  @Post()
  @HttpCode(204)
  @Header('Cache-Control', 'no-store')
  @ApiOperation({
    operationId: 'signIn',
    summary: 'Sign in with a token',
    description:
      'Sets a cookie that only this host gets. A session ends after 8 hours without a request, or after 7 days.',
  })
  @ApiNoContentResponse({ description: 'Signed in.' })
  @ApiErrors(401, 403, 413, 415, 429)
  async signIn(
    @Body({ schema: signInSchema }) { token }: SignIn,
    @Req() req: Request,
    @Res({ passthrough: true }) res: Response,
  ): Promise<void> {
    mustNotBeCrossOrigin(req);
    const address = this.guard.addressOf(req);
    const access = await this.tokens
      .verify(token, address, res, 'Enter it again.')
      .catch((error: unknown) => {
        if (error instanceof UnauthorizedException) this.sessions.counts.token.failed++;
        throw error;
      });
    if (access.role === 'metrics') throw new ForbiddenException('This token is only for GET /metrics.');
    const maxAge = MAX_HOURS * 3_600;
    // Throws if the browser would not keep it.
    sessionCookie(req, this.env.publicUrl, '', maxAge);
    const previous = sessionCookieOf(req, this.env.publicUrl);
    const secret = await this.sessions.begin(access, res);
    if (previous !== null) await this.sessions.end(previous, address);
    res.setHeader('Set-Cookie', sessionCookie(req, this.env.publicUrl, secret, maxAge));
  }

  @Delete()
  @HttpCode(204)
  @Header('Cache-Control', 'no-store')
  @ApiOperation({
    operationId: 'signOut',
    summary: 'Sign out',
    description: 'Ends the session of this browser.',
  })
  @ApiNoContentResponse({ description: 'Signed out.' })
  @ApiErrors(403)
  async signOut(@Req() req: Request, @Res({ passthrough: true }) res: Response): Promise<void> {
    const cookie = sessionCookieOf(req, this.env.publicUrl);
    if (cookie === null) return;
    mustBeFromConsole(req);
    const address = this.guard.addressOf(req);
    if ((await this.sessions.find(cookie, address)) !== null) await this.sessions.end(cookie, address);
    res.setHeader('Set-Cookie', sessionCookie(req, this.env.publicUrl, null, 0));
  }
}
