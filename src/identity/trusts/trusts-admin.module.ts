import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ExchangeService } from './exchange.service.js';
import { IssuerKeys } from './issuer-keys.service.js';
import { IssuerReader } from './issuer-reader.js';
import { TokenTester } from './token-tester.service.js';
import { TrustDirectory } from './trust-directory.service.js';
import { TrustFailure } from './trust-failure.entity.js';
import { TrustFailures } from './trust-failures.service.js';
import { Trust } from './trust.entity.js';
import { TrustsController } from './trusts.controller.js';
import { TrustsService } from './trusts.service.js';

/** Trusts: whose identity tokens are exchanged for tokens of a key. */
@Module({
  imports: [TypeOrmModule.forFeature([Trust, TrustFailure])],
  controllers: [TrustsController],
  providers: [
    TrustsService,
    TrustDirectory,
    IssuerKeys,
    IssuerReader,
    TrustFailures,
    TokenTester,
    ExchangeService
  ],
  exports: [TrustsService, TrustDirectory, IssuerKeys, ExchangeService]
})
export class TrustsAdminModule {}
