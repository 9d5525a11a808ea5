import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ProvidersModule } from '../providers/providers.module.js';
import { BatchPricer } from './batch-pricer.js';
import { CatalogService } from './catalog.service.js';
import { Price } from './price.entity.js';
import { UsageModule } from '../usage/usage.module.js';
import { MissingPricesService } from './missing-prices.service.js';
import { PriceResolver } from './price-resolver.js';
import { PricesController } from './prices.controller.js';
import { PricesService } from './prices.service.js';
import { Repricer } from './repricer.service.js';
import { UnpricedModel } from './unpriced-model.entity.js';
import { UnpricedModels } from './unpriced-models.service.js';

/** What models cost. */
@Module({
  imports: [TypeOrmModule.forFeature([Price, UnpricedModel]), ProvidersModule, UsageModule],
  controllers: [PricesController],
  providers: [
    CatalogService,
    PriceResolver,
    UnpricedModels,
    BatchPricer,
    Repricer,
    PricesService,
    MissingPricesService
  ],
  exports: [
    PricesService,
    CatalogService,
    PriceResolver,
    UnpricedModels,
    BatchPricer,
    Repricer,
    PricesService
  ]
})
export class PricesModule {}
