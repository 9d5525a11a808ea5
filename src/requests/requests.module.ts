import { Module } from '@nestjs/common';
import { KeysModule } from '../keys/keys.module.js';
import { TeamsModule } from '../teams/teams.module.js';
import { CallFilters } from './call-filters.js';
import { ExportSlots } from './export-slots.js';
import { LogArchive } from './log-archive.js';
import { LogSearch } from './log-search.js';
import { ReaderPool } from './reader-pool.js';
import { RecordedController } from './recorded.controller.js';
import { RequestLogExport } from './request-log.export.js';
import { RequestLogReader } from './request-log.reader.js';
import { RequestsController } from './requests.controller.js';

/** Shows and exports the rows of the request log. */
@Module({
  imports: [TeamsModule, KeysModule],
  controllers: [RecordedController, RequestsController],
  providers: [
    ReaderPool,
    LogArchive,
    LogSearch,
    RequestLogReader,
    RequestLogExport,
    ExportSlots,
    CallFilters
  ],
  exports: [RequestLogReader, LogArchive, LogSearch, RequestLogExport, CallFilters, ReaderPool]
})
export class RequestsModule {}
