import { Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { CredentialSources } from './credentials/credential-sources.service.js';
import { IdentityTokens } from './credentials/keyless/identity-tokens.service.js';
import { ProviderSecrets } from './provider-secrets.service.js';
import { StoredProvider } from './provider.entity.js';
import { ProvidersController } from './providers.controller.js';
import { ProvidersService } from './providers.service.js';
import { ResealService } from './reseal.service.js';
import { StoredProvidersService } from './stored-providers.service.js';

/** The providers that calls go to, and their administration. */
@Module({
  imports: [DiscoveryModule, TypeOrmModule.forFeature([StoredProvider])],
  controllers: [ProvidersController],
  providers: [
    CredentialSources,
    IdentityTokens,
    ProviderSecrets,
    ProvidersService,
    StoredProvidersService,
    ResealService
  ],
  exports: [ProvidersService, StoredProvidersService, ResealService]
})
export class ProvidersModule {}
