import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { LimitRulesModule } from '../limit-rules/limit-rules.module.js';
import { TeamsModule } from '../teams/teams.module.js';
import { InstallationLimitsRow } from './installation-limits.entity.js';
import { LimitsController } from './limits.controller.js';
import { LimitsService } from './limits.service.js';

/** Shows limits and budgets with what was used of them, and resets budgets. */
@Module({
  imports: [TypeOrmModule.forFeature([InstallationLimitsRow]), LimitRulesModule, TeamsModule],
  controllers: [LimitsController],
  providers: [LimitsService],
  exports: [LimitsService]
})
export class LimitsAdminModule {}
