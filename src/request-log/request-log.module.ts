import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { EndUsers } from './end-users.js';
import { FinishedCalls } from './finished-calls.js';
import { Journal } from './journal/journal.js';
import { JournalDrainService } from './journal/journal-drain.service.js';
import { LogWriter } from './writer/log-writer.js';
import { PartitionsService } from './partitions.service.js';
import { RequestLog } from './request-log.entity.js';
import { RequestLogService } from './request-log.service.js';

@Module({
  imports: [TypeOrmModule.forFeature([RequestLog])],
  providers: [
    // First: when the database is ready it makes today's partition before the writer writes.
    PartitionsService,
    Journal,
    LogWriter,
    JournalDrainService,
    FinishedCalls,
    EndUsers,
    RequestLogService
  ],
  exports: [RequestLogService, FinishedCalls, Journal, LogWriter, JournalDrainService, PartitionsService]
})
export class RequestLogModule {}
