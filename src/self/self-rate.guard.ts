import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import { GatewayError } from '../errors/gateway-error.js';

/** Requests of one key in a minute, in each process: enough for a tool that polls every second. */
const MOST = 60;

/** Limits how often a key may read its own data. Runs after GatewayKeyGuard, so there are as many counts as valid keys. */
@Injectable()
export class SelfRateGuard implements CanActivate {
  private readonly limiter = new RateLimiterMemory({ points: MOST, duration: 60 });

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const { caller } = context.switchToHttp().getRequest<Request>();
    try {
      await this.limiter.consume(caller.grant.keyId);
    } catch (rejected) {
      throw new GatewayError({
        code: 'too_many_requests',
        status: 429,
        message: `A key may read its own data ${MOST} times in a minute. Try again later.`,
        retryAfter: Math.max(1, Math.ceil((rejected as RateLimiterRes).msBeforeNext / 1_000)),
      });
    }
    return true;
  }
}
