import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { LimitRulesModule } from '../../limit-rules/limit-rules.module.js';
import { ObservabilityModule } from '../../observability/observability.module.js';
import { RegressionsModule } from '../../regressions/regressions.module.js';
import { RequestLogModule } from '../../request-log/request-log.module.js';
import { LedgerService } from './ledger.service.js';
import { LimitHold } from './limit-hold.entity.js';
import { LimitHotProcess } from './limit-hot-process.entity.js';
import { LimitMeter } from './limit-meter.entity.js';
import { LimitMetrics } from './limit-metrics.js';
import { LimitProcess } from './limit-process.entity.js';
import { LimitSlot } from './limit-slot.entity.js';
import { LimitSpent } from './limit-spent.entity.js';
import { RuleCache } from './rule-cache.js';
import { SpentFolding } from './spent-folding.service.js';

/** Holds, spends and settles limits and budgets. */
@Module({
  imports: [
    TypeOrmModule.forFeature([LimitMeter, LimitHold, LimitProcess, LimitHotProcess, LimitSlot, LimitSpent]),
    LimitRulesModule,
    ObservabilityModule,
    RegressionsModule,
    RequestLogModule
  ],
  providers: [RuleCache, LedgerService, LimitMetrics, SpentFolding],
  exports: [RuleCache, LedgerService]
})
export class LedgerModule {}
