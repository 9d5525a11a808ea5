import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DatabaseService } from '../database/database.service.js';
import { ObservabilityModule } from '../observability/observability.module.js';
import { ProvidersModule } from '../providers/providers.module.js';
import { ProvidersService } from '../providers/providers.service.js';
import { RequestLogModule } from '../request-log/request-log.module.js';
import { BatchPricer } from './batch-pricer.js';
import { CatalogService } from './catalog.service.js';
import { CostMetrics } from './cost-metrics.js';
import { CostRepair } from './cost-repair.service.js';
import { Price } from './price.entity.js';
import { PriceResolver } from './price-resolver.js';
import { PricesController } from './prices.controller.js';
import { PricesService } from './prices.service.js';
import { Repricer } from './repricer.service.js';
import { UnpricedModel } from './unpriced-model.entity.js';
import { UnpricedModels } from './unpriced-models.service.js';

/** After the start, so that loading the catalogue delays nothing. */
const WARM_AFTER_MS = 1_000;

/** What models cost, and the cost of each call in the request log. */
@Module({
  imports: [
    TypeOrmModule.forFeature([Price, UnpricedModel]),
    ProvidersModule,
    RequestLogModule,
    ObservabilityModule
  ],
  controllers: [PricesController],
  providers: [
    CatalogService,
    PriceResolver,
    UnpricedModels,
    BatchPricer,
    Repricer,
    CostRepair,
    CostMetrics,
    PricesService
  ],
  exports: [PriceResolver, PricesService]
})
export class PricingModule {
  constructor(catalog: CatalogService, providers: ProvidersService, database: DatabaseService) {
    database.whenReady(() => {
      setTimeout(() => {
        if (providers.hasCatalog) catalog.warm();
      }, WARM_AFTER_MS).unref();
      return Promise.resolve();
    });
  }
}
