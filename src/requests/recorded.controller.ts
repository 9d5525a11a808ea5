import { Get, Query } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '../admin/api-decorators.js';
import { CurrentScope, type Scope } from '../admin/access/access.js';
import { Roles } from '../admin/access/role.js';
import { AdminController } from '../admin/admin-controller.js';
import { ApiErrors } from '../admin/api-errors.js';
import { CallFilters } from './call-filters.js';
import { LAST_ID, RequestLogReader } from './request-log.reader.js';
import {
  type Recorded,
  type RecordedFilter,
  recordedFilterSchema,
  recordedSchema,
} from './requests.schema.js';

/** For readers that follow the log. Listed before RequestsController, whose `:id` matches `recorded` too. */
@ApiTags('Requests')
@AdminController('requests')
export class RecordedController {
  constructor(
    private readonly reader: RequestLogReader,
    private readonly filters: CallFilters,
  ) {}

  @Get('recorded')
  @Roles(['viewer', 'team'])
  @ApiOperation({
    operationId: 'listRecordedRequests',
    summary: 'List forwarded calls in the order in which they were written to the database',
    description:
      'For following the log: a call is written when it has ended. Continue after the last row with its `recorded_at` and ' +
      '`id`. Rows recorded after `recorded_until` may still be preceded by rows that are being written.',
  })
  @ApiOkResponse({ standardSchema: recordedSchema, description: 'The calls, oldest first.' })
  @ApiErrors(404)
  async list(
    @Query({ schema: recordedFilterSchema }) query: RecordedFilter,
    @CurrentScope() scope: Scope,
  ): Promise<Recorded> {
    const { recorded_after: recordedAt, after_id: id = LAST_ID, limit, ...filter } = query;
    const resolved = await this.filters.resolve(filter, scope);
    // Before the rows are read: these include every row up to it.
    const until = await this.reader.recordedUntil();
    const place = recordedAt && { recorded_at: recordedAt, id };
    return {
      data: place ? await this.reader.recordedAfter(resolved, place, limit) : [],
      recorded_until: until.toISOString(),
    };
  }
}
