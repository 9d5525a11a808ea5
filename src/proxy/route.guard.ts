import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { allowsEndpoint } from '../auth/endpoint-rule.js';
import { ANY_PROVIDER, type OwnEndpoints } from '../providers/inference-endpoints.js';
import type { Provider } from '../providers/provider.js';
import { ProvidersService } from '../providers/providers.service.js';
import { GatewayError } from '../errors/gateway-error.js';
import type { RequestTarget } from './http/request-target.js';

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
    const { target, headers } = req;
    const { grant } = req.caller;
    // Before all other checks: a client that is told so at once goes on with plain HTTP, and one that gets 403 tries again.
    if (headers.upgrade !== undefined && asksForWebSocket(headers.upgrade))
      throw new GatewayError('upgrade_required');
    const provider = this.providerOf(req);
    req.provider = provider;
    removeBasePath(target, provider.basePath);
    if (!allows(req, provider.endpoints)) throw new GatewayError('endpoint_not_allowed');
    req.subject = {
      id: req.requestId,
      keyId: grant.keyId,
      teamId: grant.teamId,
      key: req.caller.key,
      provider: provider.name,
      path: target.path,
      endpoint: target.endpoint,
      upstream: provider.origin,
      arrivedAt: req.arrivedAt,
    };
    return true;
  }

  private providerOf(req: Request): Provider {
    const { target, caller } = req;
    try {
      return this.providers.resolve(target.provider, caller.grant.providers);
    } catch (error) {
      // What is an inference endpoint of no provider stays forbidden once there is one.
      if (!allows(req, ANY_PROVIDER)) throw new GatewayError('endpoint_not_allowed');
      throw error;
    }
  }
}

function allows({ target, caller, method, rawHeaders }: Request, own: OwnEndpoints): boolean {
  const query = target.upstreamPath.slice(target.endpoint.length);
  return allowsEndpoint(caller.grant.endpoints, method, target.endpoint, rawHeaders, query, own);
}

/** @param upgrade a list of protocols (RFC 9110 7.8), whose names are case-insensitive (RFC 6455 4.2.1) */
function asksForWebSocket(upgrade: string): boolean {
  return upgrade.split(',').some((protocol) => protocol.trim().toLowerCase() === 'websocket');
}

/**
 * Clients of a provider whose URL has a path may repeat that path: groq-sdk sends `/openai/v1/...`, which is also the path of
 * the provider's URL. It is sent once.
 */
function removeBasePath(target: RequestTarget, basePath: string): void {
  if (basePath === '' || target.provider === null || !target.endpoint.startsWith(`${basePath}/`)) return;
  target.endpoint = target.endpoint.slice(basePath.length);
  target.upstreamPath = target.upstreamPath.slice(basePath.length);
}
