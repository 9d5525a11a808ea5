import { Module } from '@nestjs/common';
import { PosternModule } from '../../../src/postern.module.js';
import { TeamsModule } from '../../../src/teams/teams.module.js';
import { QuotasController } from './quotas.controller.js';
import { QuotasService } from './quotas.service.js';

@Module({
  imports: [
    PosternModule.forFeature({ name: 'quotas', subjects: ['quota'], actions: ['granted'] }),
    TeamsModule
  ],
  controllers: [QuotasController],
  providers: [QuotasService]
})
export class QuotasModule {}
