import { Module, type OnModuleInit } from '@nestjs/common';
import { DiscoveryModule, DiscoveryService } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { madeAtStart } from '../platform/made-at-start.js';
import { RegressionsModule } from '../regressions/regressions.module.js';
import { EndUsers } from './end-users.js';
import { FinishedCalls } from './finished-calls.js';
import { Journal } from './journal/journal.js';
import { JournalDrainService } from './journal/journal-drain.service.js';
import { KeptOfDeadRuns } from './journal/kept-of-dead-runs.service.js';
import { LostRowsService } from './journal/lost-rows.service.js';
import { OwnRows } from './journal/own-rows.service.js';
import { LogWriter } from './writer/log-writer.js';
import { PartitionsService } from './partitions.service.js';
import { RequestLog } from './request-log.entity.js';
import { RequestLogService } from './request-log.service.js';

@Module({
  imports: [DiscoveryModule, RegressionsModule, TypeOrmModule.forFeature([RequestLog])],
  providers: [
    // First: when the database is ready it makes today's partition before the writer writes.
    PartitionsService,
    Journal,
    LogWriter,
    LostRowsService,
    KeptOfDeadRuns,
    JournalDrainService,
    FinishedCalls,
    EndUsers,
    RequestLogService,
    OwnRows
  ],
  exports: [
    RequestLogService,
    FinishedCalls,
    Journal,
    LogWriter,
    JournalDrainService,
    LostRowsService,
    PartitionsService
  ]
})
export class RequestLogModule implements OnModuleInit {
  constructor(
    private readonly finished: FinishedCalls,
    private readonly discovery: DiscoveryService
  ) {}

  /** @throws Error for a listener of FinishedCalls that Nest makes later, or never */
  onModuleInit(): void {
    for (const made of [...this.discovery.getProviders(), ...this.discovery.getControllers()]) {
      // Undefined for values.
      const dependencies = made.getCtorMetadata() as ReturnType<typeof made.getCtorMetadata> | undefined;
      if (dependencies?.some(({ instance }) => instance === this.finished)) madeAtStart(made);
    }
  }
}
