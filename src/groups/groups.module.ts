import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { LimitRulesModule } from '../limit-rules/limit-rules.module.js';
import { TeamsModule } from '../teams/teams.module.js';
import { TeamGroup } from './group.entity.js';
import { GroupsController } from './groups.controller.js';
import { GroupsService } from './groups.service.js';

/** Groups of teams. */
@Module({
  imports: [TypeOrmModule.forFeature([TeamGroup]), LimitRulesModule, TeamsModule],
  controllers: [GroupsController],
  providers: [GroupsService],
  exports: [GroupsService]
})
export class GroupsModule {}
