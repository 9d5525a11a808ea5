import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { FinishedCalls } from './finished-calls.js';
import { Journal } from './journal/journal.js';
import { JournalDrainService } from './journal/journal-drain.service.js';
import { LogWriter } from './log-writer.js';
import { PartitionsService } from './partitions.service.js';
import { ReaderPool } from './reader-pool.js';
import { RequestLogExport } from './request-log.export.js';
import { RequestLog } from './request-log.entity.js';
import { RequestLogReader } from './request-log.reader.js';
import { RequestLogService } from './request-log.service.js';
import { UsageTotals } from './usage-totals.js';

@Module({
  imports: [TypeOrmModule.forFeature([RequestLog])],
  providers: [
    // First: when the database is ready it makes today's partition before the writer writes.
    PartitionsService,
    Journal,
    LogWriter,
    JournalDrainService,
    FinishedCalls,
    RequestLogService,
    ReaderPool,
    RequestLogReader,
    RequestLogExport,
    UsageTotals,
  ],
  exports: [
    RequestLogService,
    RequestLogReader,
    RequestLogExport,
    UsageTotals,
    FinishedCalls,
    Journal,
    LogWriter,
    JournalDrainService,
  ],
})
export class RequestLogModule {}
