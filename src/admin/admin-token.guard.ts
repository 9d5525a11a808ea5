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

/** Lets only holders of ADMIN_TOKEN pass. No gateway key ever opens the admin API: it is never even looked up here. */
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
   * Leaves the Actor on the request. The right token always passes, also from an address that sent many wrong ones: else anybody behind the same proxy
   * could lock the operator out. What keeps the token from being guessed is its length.
   *
   * @throws UnauthorizedException
   */
  async admit(req: Request, res: Response): Promise<void> {
    // Node keeps the first of two Authorization lines and drops the rest; here two are none.
    const lines = req.headersDistinct['authorization'] ?? [];
    const token = lines.length === 1 ? BEARER.exec(lines[0]!)?.[1] : undefined;
    const forwardedFor = req.headers['x-forwarded-for'] as string | undefined;
    const address = this.clientAddress.of(req.socket.remoteAddress, forwardedFor);
    // Digests are of equal length, which timingSafeEqual needs, and say nothing about the token's own.
    if (token !== undefined && timingSafeEqual(digest(token), this.expected)) {
      req.actor = adminAt(address);
      return;
    }
    // Nothing sent is no guess: it is what a browser or a scanner does that knows of no token.
    const wait = lines.length === 0 ? 0 : await this.failures.count(address);
    if (wait === 0) {
      throw new UnauthorizedException(
        'The admin token is missing or wrong. Send "Authorization: Bearer <ADMIN_TOKEN>".',
      );
    }
    // Whoever goes on guessing pays for a connection each time.
    res.set({ 'retry-after': String(wait), connection: 'close' });
    throw new UnauthorizedException(
      'The admin token is wrong, as many from this address were. Send ADMIN_TOKEN as it stands in the settings.',
    );
  }
}

function digest(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}
