import { Global, Module } from '@nestjs/common';
import { DatabaseService } from '../database/database.service.js';
import { ObservabilityModule } from '../observability/observability.module.js';
import { ProvidersModule } from '../providers/providers.module.js';
import { ProvidersService } from '../providers/providers.service.js';
import { RequestLogModule } from '../request-log/request-log.module.js';
import { ROW_PRICER } from '../request-log/writer/row-pricer.js';
import { UsageRollupModule } from '../usage/usage-rollup.module.js';
import { UsageRollup } from '../usage/usage-rollup.service.js';
import { BatchPricer } from './batch-pricer.js';
import { CatalogService } from './catalog.service.js';
import { CostMetrics } from './cost-metrics.js';
import { CostRepair } from './cost-repair.service.js';
import { PricesModule } from './prices.module.js';
import { AFTER_REPRICING } from './repricer.service.js';

/** After the start, so that loading the catalog delays nothing. */
const WARM_AFTER_MS = 1_000;

/**
 * The cost of each call in the request log, in the gateway; a command only shows and sets prices. Global for the log
 * writer and for PricesModule, which a command has too.
 */
@Global()
@Module({
  imports: [PricesModule, ProvidersModule, RequestLogModule, UsageRollupModule, ObservabilityModule],
  providers: [
    CostRepair,
    CostMetrics,
    { provide: ROW_PRICER, useExisting: BatchPricer },
    {
      provide: AFTER_REPRICING,
      inject: [UsageRollup],
      useFactory: (rollup: UsageRollup) => () => rollup.catchUp()
    }
  ],
  exports: [ROW_PRICER, AFTER_REPRICING]
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
