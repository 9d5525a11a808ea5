import { Module } from '@nestjs/common';
import { AuthModuleOptions } from '@nestjs/passport';
import { BearerStrategy } from './bearer.strategy.js';
import { KeyCache } from './key-cache.js';
import { KeyChangesService } from './key-changes.service.js';
import { KeyLookupService } from './key-lookup.service.js';
import { KeyPrefetchService } from './key-prefetch.service.js';
import { KeyUseService } from './key-use.service.js';
import { TokenRetention } from './token-retention.service.js';

/** Name of the passport strategy of this application. */
const authOptions = {
  provide: AuthModuleOptions,
  inject: [BearerStrategy],
  useFactory: ({ name }: BearerStrategy): AuthModuleOptions => ({
    defaultStrategy: name,
    property: 'caller',
    session: false
  })
};

/** Provides what GatewayKeyGuard needs. Separate from KeysModule, because the command line does not need it. */
@Module({
  providers: [
    KeyCache,
    KeyChangesService,
    KeyUseService,
    KeyLookupService,
    KeyPrefetchService,
    TokenRetention,
    BearerStrategy,
    authOptions
  ],
  exports: [AuthModuleOptions, KeyLookupService, KeyCache, KeyChangesService]
})
export class AuthModule {}
