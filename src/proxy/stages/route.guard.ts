import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { allowsEndpoint, ruleAt } from '../../auth/endpoint-rule.js';
import { ANY_PROVIDER, type OwnEndpoints } from '../../providers/inference-endpoints.js';
import type { Provider } from '../../providers/provider.js';
import { ProvidersService } from '../../providers/providers.service.js';
import { RoutesService } from '../../routes/routes.service.js';
import { GatewayError } from '../../errors/gateway-error.js';
import { CallPolicies } from '../policies/call-policies.js';
import { asksForWebSocket, checkHandshake } from '../websocket/handshake.js';
import type { RequestTarget } from '../http/request-target.js';
import { withoutBasePath } from '../routing/base-path.js';
import { RoutedCall } from '../routing/routed-call.js';

const NOT_ROUTED =
  'Routes take no WebSockets. Send plain HTTP requests, or name a provider: /p/<provider>/v1/….';

/** Finds the provider of a call, or its route, and checks that its key may use it. Runs after GatewayKeyGuard. */
@Injectable()
export class RouteGuard implements CanActivate {
  constructor(
    private readonly providers: ProvidersService,
    private readonly routes: RoutesService,
    private readonly policies: CallPolicies,
  ) {}

  canActivate(context: ExecutionContext): boolean {
    const req = context.getArgByIndex<Request>(0);
    const { call, target, headers } = req;
    const { grant } = req.caller;
    // Before all other checks: a client that is told so at once goes on with plain HTTP, and one that gets 403 tries again.
    const isWebSocket = asksForWebSocket(headers);
    if (isWebSocket && !grant.websockets) throw new GatewayError('upgrade_required');
    const route = this.routes.of(target.provider, grant);
    if (route === null) {
      const provider = this.providerOf(req, isWebSocket);
      call.provider = provider;
      removeBasePath(target, provider.basePath);
      if (isWebSocket) call.webSocket = checkHandshake(req, provider, this.policies.rulesOf(grant));
      else if (!allows(req, ruleAt(grant, provider), provider.endpoints))
        throw new GatewayError('endpoint_not_allowed');
    } else {
      if (isWebSocket) throw new GatewayError('upgrade_required', { message: NOT_ROUTED });
      call.routed = new RoutedCall(route, req, this.providers);
      call.routed.check();
    }
    return true;
  }

  private providerOf(req: Request, isWebSocket: boolean): Provider {
    const { target, caller } = req;
    try {
      return this.providers.resolve(target.provider, caller.grant);
    } catch (error) {
      // What is an inference endpoint of no provider stays forbidden once there is one, unless the team has one of its own.
      const rule = caller.grant.endpoints === 'inference' ? 'inference' : 'all';
      if (!isWebSocket && !allows(req, rule, ANY_PROVIDER)) throw new GatewayError('endpoint_not_allowed');
      throw error;
    }
  }
}

function allows(
  { target, method, rawHeaders }: Request,
  rule: ReturnType<typeof ruleAt>,
  own: OwnEndpoints,
): boolean {
  const query = target.upstreamPath.slice(target.endpoint.length);
  return allowsEndpoint(rule, method, target.endpoint, rawHeaders, query, own);
}

function removeBasePath(target: RequestTarget, basePath: string): void {
  const at = target.provider === null ? 0 : withoutBasePath(target.endpoint, basePath);
  if (at === 0) return;
  target.endpoint = target.endpoint.slice(at);
  target.upstreamPath = target.upstreamPath.slice(at);
}
