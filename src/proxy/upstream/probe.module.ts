import { Global, Module } from '@nestjs/common';
import { ProviderProbe } from '../../providers/provider-probe.js';
import { ProviderReader } from '../../providers/provider-reader.js';
import { TokenEndpoint } from '../../providers/credentials/token-endpoint.js';
import { UpstreamProbe } from './upstream-probe.js';
import { UpstreamReader } from './upstream-reader.js';
import { UpstreamTokenEndpoint } from './upstream-token-endpoint.js';

/** Separate from ProxyModule, which the command line does not load. Global, so that `providers` need not import `proxy`. */
@Global()
@Module({
  providers: [
    { provide: ProviderProbe, useClass: UpstreamProbe },
    { provide: ProviderReader, useClass: UpstreamReader },
    { provide: TokenEndpoint, useClass: UpstreamTokenEndpoint }
  ],
  exports: [ProviderProbe, ProviderReader, TokenEndpoint]
})
export class ProbeModule {}
