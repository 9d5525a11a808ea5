import { Body, Delete, Get, HttpCode, Param, Patch, Post, Query } from '@nestjs/common';
import { Roles } from '../admin/access/role.js';
import { AdminController } from '../admin/admin-controller.js';
import {
  ApiCreatedResponse,
  ApiNoContentResponse,
  ApiOkResponse,
  ApiOperation,
} from '../admin/api-decorators.js';
import { ApiErrors } from '../admin/api-errors.js';
import { CurrentActor } from '../admin/current-actor.js';
import { ETAG, EntityTags, IfMatch } from '../admin/entity-tag.js';
import { nothingSchema } from '../admin/fields.schema.js';
import type { Page } from '../database/page.js';
import type { Expected } from '../database/revision.js';
import type { Actor } from '../platform/actor.js';
import {
  type NewSink,
  newSinkSchema,
  type SinkChange,
  sinkChangeSchema,
  sinkId,
  sinkPageSchema,
  type SinkReplay,
  sinkReplaySchema,
  sinkSchema,
  type SinkView,
} from './sinks.schema.js';
import { SinksService } from './sinks.service.js';

/** With If-Match, a change of a sink that has changed meanwhile gets 409. */
@AdminController('sinks', {
  name: 'Sinks',
  description: 'Systems beyond Postgres that get every row of the request log.',
})
@EntityTags()
export class SinksController {
  constructor(private readonly sinks: SinksService) {}

  /** Not paged, because there are few sinks. */
  @Get()
  @Roles(['viewer'])
  @ApiOperation({ operationId: 'listSinks', summary: 'List all sinks with their state' })
  @ApiOkResponse({ standardSchema: sinkPageSchema, description: 'All sinks, by name.' })
  async list(@Query({ schema: nothingSchema }) _: object): Promise<Page<SinkView>> {
    return { data: await this.sinks.list(), next_cursor: null };
  }

  @Post()
  @ApiOperation({
    operationId: 'createSink',
    summary: 'Create a sink',
    description: 'Rows are sent from then on, the oldest first. See `state` and `last_error`.',
  })
  @ApiCreatedResponse({ standardSchema: sinkSchema, description: 'The new sink.', headers: ETAG })
  @ApiErrors(409, 413, 415)
  create(@Body({ schema: newSinkSchema }) sink: NewSink, @CurrentActor() by: Actor): Promise<SinkView> {
    return this.sinks.create(sink, by);
  }

  @Get(':id')
  @Roles(['viewer'])
  @ApiOperation({ operationId: 'getSink', summary: 'Get a sink, by ID or name' })
  @ApiOkResponse({ standardSchema: sinkSchema, description: 'The sink.', headers: ETAG })
  @ApiErrors(404)
  get(@Param('id', { schema: sinkId }) id: string): Promise<SinkView> {
    return this.sinks.get(id);
  }

  @Patch(':id')
  @ApiOperation({
    operationId: 'changeSink',
    summary: 'Change, pause or resume a sink',
    description: 'It goes on with the row after the last one that it has.',
  })
  @ApiOkResponse({ standardSchema: sinkSchema, description: 'The changed sink.', headers: ETAG })
  @ApiErrors(404, 409, 413, 415)
  update(
    @Param('id', { schema: sinkId }) id: string,
    @Body({ schema: sinkChangeSchema }) change: SinkChange,
    @CurrentActor() by: Actor,
    @IfMatch() expected: Expected,
  ): Promise<SinkView> {
    return this.sinks.update(id, change, by, expected);
  }

  @Post(':id/replay')
  @HttpCode(200)
  @ApiOperation({
    operationId: 'replaySink',
    summary: 'Send rows again',
    description:
      'ClickHouse replaces the rows that it has. A stream gets new messages, and an HTTP receiver new requests.',
  })
  @ApiOkResponse({ standardSchema: sinkSchema, description: 'The sink.', headers: ETAG })
  @ApiErrors(404, 409, 413, 415)
  replay(
    @Param('id', { schema: sinkId }) id: string,
    @Body({ schema: sinkReplaySchema }) { from }: SinkReplay,
    @CurrentActor() by: Actor,
    @IfMatch() expected: Expected,
  ): Promise<SinkView> {
    return this.sinks.replay(id, from, by, expected);
  }

  @Delete(':id')
  @HttpCode(204)
  @ApiOperation({ operationId: 'removeSink', summary: 'Remove a sink; the rows that it has stay there' })
  @ApiNoContentResponse({ description: 'Removed.' })
  @ApiErrors(404, 409)
  remove(
    @Param('id', { schema: sinkId }) id: string,
    @CurrentActor() by: Actor,
    @IfMatch() expected: Expected,
  ): Promise<void> {
    return this.sinks.remove(id, by, expected);
  }
}
