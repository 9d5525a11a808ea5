import { createHash, timingSafeEqual } from 'node:crypto';
import { Controller, Get, HttpException, Logger, NotFoundException, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { AdminGuard } from '../../admin/admin.guard.js';
import { ApiExcludeController } from '../../admin/api-decorators.js';
import { FlowCookie } from '../../admin/oidc/flow-cookie.js';
import { type OidcIdentity, OidcService } from '../../admin/oidc/oidc.service.js';
import { mustNotBeCrossOrigin } from '../../admin/sessions/same-origin.js';
import { InjectSettings } from '../../config/config.module.js';
import { required, type Settings } from '../../config/settings.js';
import { isUuid } from '../../database/page.js';
import { describeError } from '../../errors/describe-error.js';
import { PublicRoute } from '../../platform/public-route.js';
import { OauthError, readParameters } from '../oauth/parameters.js';
import {
  approvedPage,
  codePage,
  confirmPage,
  deniedPage,
  DEVICE_HEADERS,
  failedPage,
  noTeamPage,
  toConfirmationPage,
  toProviderPage,
} from './device-page.js';
import { DeviceRequests, NoTeam, REQUEST_SECONDS, RequestGone } from './device-requests.service.js';

/**
 * The pages on which a person confirms the request of a client: the code, single sign-on, one confirmation, in this order.
 * No session of the console counts here, because a token may have begun it.
 */
@ApiExcludeController()
@PublicRoute()
@Controller('device')
export class DeviceController {
  private readonly logger = new Logger('SignIn');
  private readonly flow: FlowCookie;
  private readonly cookie: string;
  private readonly attributes: string;

  constructor(
    @InjectSettings() private readonly env: Settings,
    private readonly guard: AdminGuard,
    private readonly oidc: OidcService,
    private readonly requests: DeviceRequests,
  ) {
    const isSecure = env.publicUrl?.startsWith('https:') ?? true;
    this.flow = new FlowCookie(env.publicUrl ?? '', required(env, 'adminToken'));
    this.cookie = isSecure ? '__Host-postern-device' : 'postern_device';
    this.attributes = `Path=/; HttpOnly;${isSecure ? ' Secure;' : ''} SameSite=Strict`;
    if (env.signIn === 'on')
      oidc.deviceConfirmation = (identity, id, _req, res) => this.identified(identity, id, res);
  }

  @Get()
  show(@Res() res: Response): void {
    this.mustBeOn();
    this.send(res, 200, codePage(null));
  }

  /** The code is right: on to the provider. */
  @Post()
  async open(@Req() req: Request, @Res() res: Response): Promise<void> {
    await this.attempt(res, async () => {
      mustNotBeCrossOrigin(req);
      const typed = (await readParameters(req, res)).get('user_code') ?? '';
      const id = await this.requests.open(typed, this.guard.addressOf(req));
      if (id === null)
        return this.send(res, 400, codePage('No terminal is waiting with this code. Type it as shown.'));
      const { url, flow } = await this.oidc.begin('device', id);
      res.set('set-cookie', await this.flow.set(flow));
      this.send(res, 200, toProviderPage(url.href));
    });
  }

  @Get('confirm')
  async ask(@Req() req: Request, @Res() res: Response): Promise<void> {
    await this.attempt(res, async () => {
      const secret = this.secretOf(req);
      this.send(res, 200, confirmPage(await this.requests.find(secret), formToken(secret)));
    });
  }

  @Post('confirm')
  async confirm(@Req() req: Request, @Res() res: Response): Promise<void> {
    await this.attempt(res, async () => {
      mustNotBeCrossOrigin(req);
      const secret = this.secretOf(req);
      const parameters = await readParameters(req, res);
      const given = Buffer.from(parameters.get('form_token') ?? '');
      const expected = Buffer.from(formToken(secret));
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) throw new RequestGone();
      if (parameters.get('action') === 'approve') {
        const team = parameters.get('team') ?? '';
        if (!isUuid(team)) throw new HttpException('Choose a team.', 400);
        await this.requests.approve(secret, team, this.guard.addressOf(req));
      } else await this.requests.deny(secret);
      res.set('set-cookie', `${this.cookie}=; Max-Age=0; ${this.attributes}`);
      this.send(res, 200, parameters.get('action') === 'approve' ? approvedPage() : deniedPage());
    });
  }

  /** The provider has confirmed the person. */
  private async identified(identity: OidcIdentity, id: string, res: Response): Promise<void> {
    await this.attempt(res, async () => {
      const secret = await this.requests.identify(id, identity).catch((error: unknown) => {
        if (error instanceof NoTeam) this.oidc.tellNoTeam(identity);
        throw error;
      });
      const cookie = `${this.cookie}=${secret}; Max-Age=${REQUEST_SECONDS}; ${this.attributes}`;
      res.append('set-cookie', cookie);
      this.send(res, 200, toConfirmationPage());
    });
  }

  /** @throws RequestGone if this browser has confirmed nothing, or two cookies */
  private secretOf(req: Request): string {
    const pairs = (req.headers.cookie ?? '').split(';').map((pair) => pair.trim());
    const found = pairs.filter((pair) => pair.startsWith(`${this.cookie}=`));
    if (found.length !== 1) throw new RequestGone();
    return found[0]!.slice(this.cookie.length + 1);
  }

  private mustBeOn(): void {
    if (this.env.signIn === 'off') throw new NotFoundException();
  }

  /** Shows what people can read, whatever happens. */
  private async attempt(res: Response, work: () => Promise<void>): Promise<void> {
    this.mustBeOn();
    try {
      await work();
    } catch (error) {
      if (error instanceof NoTeam) this.send(res, 403, noTeamPage(error));
      else if (error instanceof HttpException) this.send(res, error.getStatus(), failedPage(error.message));
      else if (error instanceof OauthError) this.send(res, error.status, failedPage(error.description));
      else {
        this.logger.warn(`A sign-in could not be confirmed: ${describeError(error)}`);
        this.send(res, 503, failedPage('The sign-in could not be finished. Try again in a minute.'));
      }
    }
  }

  private send(res: Response, status: number, html: string): void {
    res.status(status).set(DEVICE_HEADERS).type('html').send(html);
  }
}

/** What the form must send: a page of another origin knows no cookie. */
function formToken(secret: string): string {
  return createHash('sha256').update(`postern device form\0${secret}`).digest('base64url');
}
