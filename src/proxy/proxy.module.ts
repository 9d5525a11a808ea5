import { HttpModule } from '@nestjs/axios';
import { Module } from '@nestjs/common';
import { KeyAuthModule } from '../keys/key-auth.module.js';
import { ProvidersModule } from '../providers/providers.module.js';
import { RequestLogModule } from '../request-log/request-log.module.js';
import { Forwarder } from './forwarder.js';
import { ProxyController } from './proxy.controller.js';
import { upstreamHttpOptions } from './upstream-adapter.js';
import { UpstreamPools } from './upstream-pools.js';

@Module({ providers: [UpstreamPools], exports: [UpstreamPools] })
class UpstreamModule {}

@Module({
  imports: [
    KeyAuthModule,
    ProvidersModule,
    RequestLogModule,
    HttpModule.registerAsync({
      imports: [UpstreamModule],
      inject: [UpstreamPools],
      useFactory: upstreamHttpOptions,
    }),
  ],
  controllers: [ProxyController],
  providers: [Forwarder],
})
export class ProxyModule {}
