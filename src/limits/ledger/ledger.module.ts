import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { LimitRulesModule } from '../../limit-rules/limit-rules.module.js';
import { ObservabilityModule } from '../../observability/observability.module.js';
import { RequestLogModule } from '../../request-log/request-log.module.js';
import { LedgerService } from './ledger.service.js';
import { LimitHold } from './limit-hold.entity.js';
import { LimitMeter } from './limit-meter.entity.js';
import { LimitMetrics } from './limit-metrics.js';
import { LimitProcess } from './limit-process.entity.js';
import { LimitSlot } from './limit-slot.entity.js';
import { RuleCache } from './rule-cache.js';

/** Holds, spends and settles limits and budgets. */
@Module({
  imports: [
    TypeOrmModule.forFeature([LimitMeter, LimitHold, LimitProcess, LimitSlot]),
    LimitRulesModule,
    ObservabilityModule,
    RequestLogModule
  ],
  providers: [RuleCache, LedgerService, LimitMetrics],
  exports: [RuleCache, LedgerService]
})
export class LedgerModule {}
