import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DatabaseRegression } from '../database-regression.entity.js';
import { RegressionsController } from './regressions.controller.js';
import { RegressionsAdminService } from './regressions-admin.service.js';

/** What administrators see of losses, and decide. */
@Module({
  imports: [TypeOrmModule.forFeature([DatabaseRegression])],
  controllers: [RegressionsController],
  providers: [RegressionsAdminService]
})
export class RegressionsAdminModule {}
