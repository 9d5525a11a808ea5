import { Module, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { ProvidersModule } from '../../providers/providers.module.js';
import type { GatewayHttpAdapter } from '../../proxy/http/gateway-http.adapter.js';
import { RoutesModule } from '../../routes/routes.module.js';
import { AuthModule } from '../../auth/auth.module.js';
import { IssuedTokens } from './issued-tokens.service.js';
import { OauthEndpoints } from './oauth-endpoints.service.js';
import { OauthGrants } from './oauth-grants.js';
import { OauthController } from './oauth.controller.js';
import { TokenMetrics } from './token-metrics.js';

/** The endpoints where clients get tokens and end them. Other modules say what for. */
@Module({
  imports: [AuthModule, ProvidersModule, RoutesModule],
  controllers: [OauthController],
  providers: [OauthGrants, IssuedTokens, OauthEndpoints, TokenMetrics],
  exports: [OauthGrants, IssuedTokens, OauthEndpoints]
})
export class OauthModule implements OnModuleInit {
  constructor(
    private readonly endpoints: OauthEndpoints,
    private readonly host: HttpAdapterHost<GatewayHttpAdapter>
  ) {}

  /** Not in the constructor: Nest's test module has no adapter yet at that time. */
  onModuleInit(): void {
    this.host.httpAdapter.ownEndpoints = this.endpoints;
  }
}
