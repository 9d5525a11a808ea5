import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { allowsEndpoint } from '../auth/endpoint-rule.js';
import type { Provider } from '../providers/provider.js';
import { ProvidersService } from '../providers/providers.service.js';
import { GatewayError } from '../errors/gateway-error.js';

declare module 'express-serve-static-core' {
  interface Request {
    /** Set by RouteGuard. */
    provider: Provider;
  }
}

/** Finds the provider of a call and checks that its key may use it. Runs after GatewayKeyGuard; sets `req.provider`. */
@Injectable()
export class RouteGuard implements CanActivate {
  constructor(private readonly providers: ProvidersService) {}

  canActivate(context: ExecutionContext): boolean {
    const req = context.getArgByIndex<Request>(0);
    const { target } = req;
    const { grant } = req.caller;
    const query = target.upstreamPath.slice(target.endpoint.length);
    if (!allowsEndpoint(grant.endpoints, req.method, target.endpoint, req.rawHeaders, query)) {
      throw new GatewayError('endpoint_not_allowed');
    }
    req.provider = this.providers.resolve(target.provider, grant.providers);
    req.subject = {
      id: req.requestId,
      keyId: grant.keyId,
      teamId: grant.teamId,
      key: req.caller.key,
      provider: req.provider.name,
      path: target.path,
      endpoint: target.endpoint,
      upstream: req.provider.origin,
      arrivedAt: req.arrivedAt,
    };
    return true;
  }
}
