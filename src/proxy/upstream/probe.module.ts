import { Global, Module } from '@nestjs/common';
import { ProviderProbe } from '../../providers/provider-probe.js';
import { TokenEndpoint } from '../../providers/credentials/token-endpoint.js';
import { UpstreamProbe } from './upstream-probe.js';
import { UpstreamTokenEndpoint } from './upstream-token-endpoint.js';

/** Separate from ProxyModule, which the command line does not load. Global, so that `providers` need not import `proxy`. */
@Global()
@Module({
  providers: [
    { provide: ProviderProbe, useClass: UpstreamProbe },
    { provide: TokenEndpoint, useClass: UpstreamTokenEndpoint }
  ],
  exports: [ProviderProbe, TokenEndpoint]
})
export class ProbeModule {}
