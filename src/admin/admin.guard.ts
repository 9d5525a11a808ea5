import {
  type CanActivate,
  type ExecutionContext,
  ForbiddenException,
  Injectable,
  UnauthorizedException,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Request, Response } from 'express';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { ClientAddress } from '../platform/client-address.js';
import type { Access } from './access/access.js';
import { mayUse, Roles } from './access/role.js';
import { TokenVerifier } from './access/token-verifier.js';
import { mustBeFromConsole } from './sessions/same-origin.js';
import { sessionCookieOf } from './sessions/session-cookie.js';
import { SessionsService } from './sessions/sessions.service.js';

/** RFC 6750 2.1, the scheme in any case (RFC 9110 11.1). */
const BEARER = /^Bearer ([^\s]+)$/i;

/** RFC 7617 2, for browsers. */
const BASIC = /^Basic ([\w+/=-]+)$/i;

const HINT = 'Send "Authorization: Bearer <ADMIN_TOKEN>"';

/**
 * Accepts requests with ADMIN_TOKEN, a named token, or the cookie of a session of the console, whose role may use the
 * handler. Gateway keys are never looked up here, so none opens the admin API.
 */
@Injectable()
export class AdminGuard implements CanActivate {
  private readonly clientAddress: ClientAddress;

  constructor(
    @InjectSettings() private readonly env: Settings,
    private readonly reflector: Reflector,
    private readonly tokens: TokenVerifier,
    private readonly sessions: SessionsService,
  ) {
    this.clientAddress = new ClientAddress(env.trustedProxies, 'full');
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    const req = http.getRequest<Request>();
    const res = http.getResponse<Response>();
    // Shared caches may store responses to requests with a cookie, unlike those with Authorization (RFC 9111 3).
    res.setHeader('Cache-Control', 'no-store');
    await this.admit(req, res);
    const declared = this.reflector.getAllAndOverride(Roles, [context.getHandler(), context.getClass()]);
    if (mayUse(req.access.role, declared)) return true;
    throw new ForbiddenException(`The role ${req.access.role} may not do this. Ask an administrator.`);
  }

  /** The client's address, behind trusted proxies. */
  addressOf(req: Request): string | null {
    const forwardedFor = req.headers['x-forwarded-for'] as string | undefined;
    return this.clientAddress.of(req.socket.remoteAddress, forwardedFor);
  }

  /**
   * Sets the access and the Actor on the request. It does not look at the role.
   *
   * @param options.basic accepts HTTP Basic too: any user, the token as password. Only for pages that change nothing: a
   *   browser sends Basic credentials by itself, also with a request that another site made it send
   * @throws UnauthorizedException; ForbiddenException for a request with a cookie that another site may have made
   */
  async admit(req: Request, res: Response, { basic = false } = {}): Promise<void> {
    req.access = await this.accessOf(req, res, basic);
    req.actor = req.access.actor;
  }

  private async accessOf(req: Request, res: Response, basic: boolean): Promise<Access> {
    const address = this.addressOf(req);
    const hint = HINT + (basic ? '; in a browser, give any user name and the token as password.' : '.');
    // Node keeps the first of two Authorization lines and drops the rest; here two lines count as none.
    const lines = req.headersDistinct['authorization'] ?? [];
    if (lines.length > 0) {
      const token = lines.length === 1 ? tokenOf(lines[0]!, basic) : undefined;
      if (token === undefined) return this.tokens.reject(address, res, hint);
      return this.tokens.verify(token, address, res, hint);
    }
    const cookie = sessionCookieOf(req, this.env.publicUrl);
    if (cookie !== null) {
      if (req.method !== 'GET' && req.method !== 'HEAD') mustBeFromConsole(req);
      const session = await this.sessions.find(cookie, address);
      if (session !== null) return session.access;
    }
    // A request without a token is not a guess: browsers and scanners send those.
    throw new UnauthorizedException(`The admin token is missing or wrong. ${hint}`);
  }
}

function tokenOf(authorization: string, basic: boolean): string | undefined {
  const token = BEARER.exec(authorization)?.[1];
  if (token !== undefined || !basic) return token;
  const encoded = BASIC.exec(authorization)?.[1];
  if (encoded === undefined) return undefined;
  const credentials = Buffer.from(encoded, 'base64').toString();
  const colon = credentials.indexOf(':');
  return colon === -1 ? undefined : credentials.slice(colon + 1);
}
