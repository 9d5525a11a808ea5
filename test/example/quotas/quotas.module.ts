import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { PosternModule, Team } from '../../../src/index.js';
import { AddQuotas1795000099000 } from './1795000099000-add-quotas.js';
import { Quota } from './quota.entity.js';
import { QuotasController } from './quotas.controller.js';
import { QuotasService } from './quotas.service.js';

@Module({
  imports: [
    PosternModule.forFeature({ name: 'quotas', migrations: [AddQuotas1795000099000], subjects: ['quota'] }),
    TypeOrmModule.forFeature([Quota, Team])
  ],
  controllers: [QuotasController],
  providers: [QuotasService]
})
export class QuotasModule {}
