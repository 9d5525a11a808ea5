import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { PosternModule } from '../../../src/postern.module.js';
import { Team } from '../../../src/teams/team.entity.js';
import { Quota } from './quota.entity.js';
import { QuotasController } from './quotas.controller.js';
import { QuotasService } from './quotas.service.js';

@Module({
  imports: [
    PosternModule.forFeature({ name: 'quotas', subjects: ['quota'] }),
    TypeOrmModule.forFeature([Quota, Team])
  ],
  controllers: [QuotasController],
  providers: [QuotasService]
})
export class QuotasModule {}
