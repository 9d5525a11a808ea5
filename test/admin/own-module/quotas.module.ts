import { Module } from '@nestjs/common';
import { TeamsModule } from '../../../src/teams/teams.module.js';
import { QuotasController } from './quotas.controller.js';
import { QuotasService } from './quotas.service.js';

@Module({ imports: [TeamsModule], controllers: [QuotasController], providers: [QuotasService] })
export class QuotasModule {}
