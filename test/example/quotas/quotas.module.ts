import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuditModule } from '../../../src/audit/audit.module.js';
import { Team } from '../../../src/teams/team.entity.js';
import { Quota } from './quota.entity.js';
import { QuotasController } from './quotas.controller.js';
import { QuotasService } from './quotas.service.js';

@Module({
  imports: [AuditModule.forFeature({ types: ['quota'] }), TypeOrmModule.forFeature([Quota, Team])],
  controllers: [QuotasController],
  providers: [QuotasService]
})
export class QuotasModule {}
