import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { LimitRulesModule } from '../limit-rules/limit-rules.module.js';
import { ObservabilityModule } from '../observability/observability.module.js';
import { RequestLogModule } from '../request-log/request-log.module.js';
import { TeamsModule } from '../teams/teams.module.js';
import { LedgerService } from './ledger/ledger.service.js';
import { LimitHold } from './ledger/limit-hold.entity.js';
import { LimitMeter } from './ledger/limit-meter.entity.js';
import { LimitProcess } from './ledger/limit-process.entity.js';
import { LimitSlot } from './ledger/limit-slot.entity.js';
import { RuleCache } from './ledger/rule-cache.js';
import { LimitMetrics } from './limit-metrics.js';
import { LimitsController } from './limits.controller.js';
import { LimitsService } from './limits.service.js';

/** Limits and budgets: holds, spends and settles them, and shows what was used. */
@Module({
  imports: [
    TypeOrmModule.forFeature([LimitMeter, LimitHold, LimitProcess, LimitSlot]),
    LimitRulesModule,
    ObservabilityModule,
    RequestLogModule,
    TeamsModule
  ],
  controllers: [LimitsController],
  providers: [RuleCache, LedgerService, LimitMetrics, LimitsService],
  exports: [LedgerService]
})
export class LimitsModule {}
