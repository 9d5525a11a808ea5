import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { LimitRulesModule } from '../limit-rules/limit-rules.module.js';
import { Team } from './team.entity.js';
import { TeamChanges } from './team-changes.js';
import { TeamsController } from './teams.controller.js';
import { TeamsService } from './teams.service.js';

/** The teams that gateway keys belong to. */
@Module({
  imports: [TypeOrmModule.forFeature([Team]), LimitRulesModule],
  controllers: [TeamsController],
  providers: [TeamsService, TeamChanges],
  exports: [TeamsService, TeamChanges]
})
export class TeamsModule {}
