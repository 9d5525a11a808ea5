import { Global, Module } from '@nestjs/common';
import { ProviderProbe } from '../../providers/provider-probe.js';
import { UpstreamProbe } from './upstream-probe.js';

/** Apart from ProxyModule, which the command line does without. Global, because the admin room does not know this one. */
@Global()
@Module({ providers: [{ provide: ProviderProbe, useClass: UpstreamProbe }], exports: [ProviderProbe] })
export class ProbeModule {}
