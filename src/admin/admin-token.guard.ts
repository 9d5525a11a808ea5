import { type CanActivate, type ExecutionContext, Injectable, UnauthorizedException } from '@nestjs/common';
import type { Request, Response } from 'express';
import { hash, timingSafeEqual } from 'node:crypto';
import { adminAt } from '../platform/actor.js';
import { ClientAddress } from '../platform/client-address.js';
import { InjectSettings } from '../config/config.module.js';
import { required, type Settings } from '../config/settings.js';
import { TokenFailures } from './token-failures.js';

/** RFC 6750 2.1, the scheme in any case (RFC 9110 11.1). */
const BEARER = /^Bearer ([^\s]+)$/i;

/** RFC 7617 2, for browsers. */
const BASIC = /^Basic ([\w+/=-]+)$/i;

/** Accepts only requests with ADMIN_TOKEN. Gateway keys are never looked up here, so none opens the admin API. */
@Injectable()
export class AdminTokenGuard implements CanActivate {
  private readonly expected: Buffer;
  private readonly clientAddress: ClientAddress;

  constructor(
    @InjectSettings() env: Settings,
    private readonly failures: TokenFailures,
  ) {
    this.expected = digest(required(env, 'adminToken'));
    this.clientAddress = new ClientAddress(env.trustedProxies, 'full');
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    await this.admit(http.getRequest<Request>(), http.getResponse<Response>());
    return true;
  }

  /**
   * Sets the Actor on the request. The right token always passes, also from an address that sent many wrong ones:
   * otherwise anybody behind the same proxy could lock the operator out. The token's length protects it from guessing.
   *
   * @param options.basic accepts HTTP Basic too: any user, the token as password. Only for pages that change nothing: a
   *   browser sends Basic credentials by itself, also with a request that another site made it send
   * @throws UnauthorizedException
   */
  async admit(req: Request, res: Response, { basic = false } = {}): Promise<void> {
    // Node keeps the first of two Authorization lines and drops the rest; here two lines count as none.
    const lines = req.headersDistinct['authorization'] ?? [];
    const token = lines.length === 1 ? tokenOf(lines[0]!, basic) : undefined;
    const forwardedFor = req.headers['x-forwarded-for'] as string | undefined;
    const address = this.clientAddress.of(req.socket.remoteAddress, forwardedFor);
    // timingSafeEqual needs equal lengths: digests have them and do not reveal the token's length.
    if (token !== undefined && timingSafeEqual(digest(token), this.expected)) {
      req.actor = adminAt(address);
      return;
    }
    // A request without a token is not a guess: browsers and scanners send those.
    const wait = lines.length === 0 ? 0 : await this.failures.count(address);
    if (wait === 0) {
      throw new UnauthorizedException(
        'The admin token is missing or wrong. Send "Authorization: Bearer <ADMIN_TOKEN>"' +
          (basic ? '; in a browser, give any user name and the token as password.' : '.'),
      );
    }
    // Each further guess costs the client a new connection.
    res.set({ 'retry-after': String(wait), connection: 'close' });
    throw new UnauthorizedException(
      'Wrong admin token. Too many wrong tokens came from this address; send the configured ADMIN_TOKEN.',
    );
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

function digest(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}
