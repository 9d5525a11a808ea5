import { type CanActivate, type ExecutionContext, Injectable, UnauthorizedException } from '@nestjs/common';
import type { Request } from 'express';
import { hash, timingSafeEqual } from 'node:crypto';
import { InjectEnv } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';

/** RFC 6750 2.1, the scheme in any case (RFC 9110 11.1). */
const BEARER = /^Bearer ([^\s]+)$/i;

/** Lets only holders of ADMIN_TOKEN pass. No gateway key ever opens the admin API: it is never even looked up here. */
@Injectable()
export class AdminTokenGuard implements CanActivate {
  private readonly expected: Buffer;

  constructor(@InjectEnv() env: Settings) {
    this.expected = digest(env.adminToken);
  }

  canActivate(context: ExecutionContext): boolean {
    // Node keeps the first of two Authorization lines and drops the rest; here two are none.
    const lines = context.switchToHttp().getRequest<Request>().headersDistinct['authorization'] ?? [];
    const token = lines.length === 1 ? BEARER.exec(lines[0]!)?.[1] : undefined;
    // Digests are of equal length, which timingSafeEqual needs, and say nothing about the token's own.
    if (token !== undefined && timingSafeEqual(digest(token), this.expected)) return true;
    throw new UnauthorizedException(
      'The admin token is missing or wrong. Send "Authorization: Bearer <ADMIN_TOKEN>".',
    );
  }
}

function digest(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}
