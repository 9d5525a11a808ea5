import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DatabaseRegression } from './database-regression.entity.js';
import { GatewayRun } from './gateway-run.entity.js';
import { ProcessRun } from './process-run.js';
import { Regressions } from './regressions.service.js';
import { RunCounter } from './run-counter.js';

/** Notices that Postgres has lost transactions, and lets modules put back what they know. */
@Module({
  imports: [TypeOrmModule.forFeature([GatewayRun, DatabaseRegression])],
  providers: [ProcessRun, RunCounter, Regressions],
  exports: [ProcessRun, RunCounter, Regressions]
})
export class RegressionsModule {}
