import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { FailingProvider } from './failing-provider.entity.js';
import { ProviderHealthWatch } from './provider-health.service.js';

/** Notices and announces providers that fail. */
@Module({
  imports: [TypeOrmModule.forFeature([FailingProvider])],
  providers: [ProviderHealthWatch],
  exports: [ProviderHealthWatch]
})
export class ProviderHealthModule {}
