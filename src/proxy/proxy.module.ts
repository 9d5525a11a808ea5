import { HttpService } from '@nestjs/axios';
import { Module, type OnModuleInit } from '@nestjs/common';
import { APP_FILTER, HttpAdapterHost } from '@nestjs/core';
import { IdempotencyModule } from '../idempotency/idempotency.module.js';
import { AuthModule } from '../auth/auth.module.js';
import { ProvidersModule } from '../providers/providers.module.js';
import { RoutesModule } from '../routes/routes.module.js';
import { RequestLogModule } from '../request-log/request-log.module.js';
import { CachingForwarder } from './stages/caching-forwarder.js';
import { ExchangeServices } from './exchange/exchange-services.js';
import { FinishingCalls } from './exchange/finishing-calls.service.js';
import { FastPath } from './fast-path.js';
import { Forwarder } from './stages/forwarder.js';
import { GatewayErrorFilter } from './http/gateway-error.filter.js';
import { GatewayHttpAdapter } from './http/gateway-http.adapter.js';
import { IdempotentForwarder } from './stages/idempotent-forwarder.js';
import { AdmissionService } from './stages/admission.service.js';
import { GatheringMemory } from './stages/gathering.js';
import { PoliciesModule } from './policies/policies.module.js';
import { StoredResponseSender } from './stages/stored-response-sender.js';
import { ProxyController } from './proxy.controller.js';
import { WebSocketSessions } from './websocket/websocket-sessions.service.js';
import { UpstreamHttpService } from './upstream/upstream-http.service.js';
import { UpstreamPools } from './upstream/upstream-pools.js';

@Module({ providers: [UpstreamPools], exports: [UpstreamPools] })
class UpstreamModule {}

@Module({
  imports: [
    AuthModule,
    IdempotencyModule,
    PoliciesModule,
    ProvidersModule,
    RequestLogModule,
    RoutesModule,
    UpstreamModule
  ],
  controllers: [ProxyController],
  providers: [
    AdmissionService,
    CachingForwarder,
    ExchangeServices,
    FastPath,
    FinishingCalls,
    Forwarder,
    GatheringMemory,
    IdempotentForwarder,
    StoredResponseSender,
    WebSocketSessions,
    { provide: HttpService, useClass: UpstreamHttpService },
    { provide: APP_FILTER, useClass: GatewayErrorFilter }
  ],
  exports: [FinishingCalls, UpstreamModule, WebSocketSessions]
})
export class ProxyModule implements OnModuleInit {
  constructor(
    private readonly fastPath: FastPath,
    private readonly host: HttpAdapterHost<GatewayHttpAdapter>
  ) {}

  /** Not in the constructor: Nest's test module has no adapter yet at that time. */
  onModuleInit(): void {
    this.host.httpAdapter.fastPath = this.fastPath;
  }
}
