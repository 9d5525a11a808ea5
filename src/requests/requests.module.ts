import { Module } from '@nestjs/common';
import { KeysModule } from '../keys/keys.module.js';
import { TeamsModule } from '../teams/teams.module.js';
import { CallFilters } from './call-filters.js';
import { ReaderPool } from './reader-pool.js';
import { RecordedController } from './recorded.controller.js';
import { RequestLogExport } from './request-log.export.js';
import { RequestLogReader } from './request-log.reader.js';
import { RequestsController } from './requests.controller.js';
import { UsageController } from './usage.controller.js';
import { UsageTotals } from './usage-totals.js';
import { UsageService } from './usage.service.js';

/** Shows, exports and adds up the rows of the request log. */
@Module({
  imports: [TeamsModule, KeysModule],
  controllers: [RecordedController, RequestsController, UsageController],
  providers: [ReaderPool, RequestLogReader, RequestLogExport, UsageTotals, CallFilters, UsageService],
  exports: [RequestLogReader, RequestLogExport, UsageTotals]
})
export class RequestsModule {}
