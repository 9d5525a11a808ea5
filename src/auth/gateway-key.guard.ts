import { type ExecutionContext, Injectable } from '@nestjs/common';
import { AuthGuard, AuthModuleOptions } from '@nestjs/passport';
import type { Request } from 'express';
import { GatewayError } from '../errors/gateway-error.js';
import type { Caller } from './caller.js';
import { readCredential } from './credential.js';
import { KeyLookupService } from './key-lookup.service.js';

/**
 * Accepts only requests with a valid gateway key and sets the Caller on the request. BearerStrategy authenticates the
 * first call of a key; later calls use the cached result, because passport adds a fifth to a call.
 */
@Injectable()
export class GatewayKeyGuard extends AuthGuard() {
  /** @internal */
  constructor(
    options: AuthModuleOptions,
    private readonly lookup: KeyLookupService,
  ) {
    super(options);
  }

  override canActivate(
    context: ExecutionContext,
  ): ReturnType<InstanceType<ReturnType<typeof AuthGuard>>['canActivate']> {
    // A guard that extends this one may override what passport calls.
    if (this.constructor !== GatewayKeyGuard) return super.canActivate(context);
    const req = context.getArgByIndex<Request>(0);
    const key = readCredential(req.rawHeaders);
    const grant = key === null ? null : this.lookup.findCached(key);
    if (grant === null) return super.canActivate(context);
    req.caller = { grant, key: key!, version: this.lookup.version };
    return true;
  }

  override handleRequest<T = Caller>(error: Error | null, caller: T | false | null): T {
    if (error) throw error;
    if (!caller) throw new GatewayError('invalid_api_key');
    return caller;
  }
}
