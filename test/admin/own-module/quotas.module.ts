import { Module } from '@nestjs/common';
import { AuditModule } from '../../../src/audit/audit.module.js';
import { TeamsModule } from '../../../src/teams/teams.module.js';
import { QuotasController } from './quotas.controller.js';
import { QuotasService } from './quotas.service.js';

@Module({
  imports: [AuditModule.forFeature({ types: ['quota'], actions: ['granted'] }), TeamsModule],
  controllers: [QuotasController],
  providers: [QuotasService]
})
export class QuotasModule {}
