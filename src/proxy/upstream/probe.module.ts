import { Global, Module } from '@nestjs/common';
import { ProviderProbe } from '../../providers/provider-probe.js';
import { UpstreamProbe } from './upstream-probe.js';

/** Separate from ProxyModule, which the command line does not load. Global, so that `providers` need not import `proxy`. */
@Global()
@Module({ providers: [{ provide: ProviderProbe, useClass: UpstreamProbe }], exports: [ProviderProbe] })
export class ProbeModule {}
