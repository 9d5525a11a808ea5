import { Body, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { Roles } from '../../admin/access/role.js';
import { AdminController } from '../../admin/admin-controller.js';
import { ApiBody, ApiOkResponse, ApiOperation } from '../../admin/api-decorators.js';
import { ApiErrors } from '../../admin/api-errors.js';
import { CurrentActor } from '../../admin/current-actor.js';
import { nothingSchema, pathId } from '../../admin/fields.schema.js';
import type { Page } from '../../database/page.js';
import type { Actor } from '../../platform/actor.js';
import {
  type RegressionFilter,
  regressionFilterSchema,
  regressionPageSchema,
  regressionSchema,
  type RegressionView,
} from './regressions.schema.js';
import { RegressionsAdminService } from './regressions-admin.service.js';

@AdminController('database/regressions', {
  name: 'Database regressions',
  description:
    'Losses of transactions that Postgres had acknowledged: a failover to an asynchronous standby, or a restored backup.',
})
export class RegressionsController {
  constructor(private readonly regressions: RegressionsAdminService) {}

  @Get()
  @Roles(['viewer'])
  @ApiOperation({ operationId: 'listDatabaseRegressions', summary: 'List losses of Postgres, newest first' })
  @ApiOkResponse({ standardSchema: regressionPageSchema, description: 'One page of them.' })
  list(@Query({ schema: regressionFilterSchema }) filter: RegressionFilter): Promise<Page<RegressionView>> {
    return this.regressions.list(filter);
  }

  @Get(':id')
  @Roles(['viewer'])
  @ApiOperation({ operationId: 'getDatabaseRegression', summary: 'Get a loss of Postgres' })
  @ApiOkResponse({ standardSchema: regressionSchema, description: 'The loss.' })
  @ApiErrors(404)
  get(@Param('id', { schema: pathId('regression') }) id: string): Promise<RegressionView> {
    return this.regressions.get(id);
  }

  @Post(':id/put-back')
  @HttpCode(200)
  @ApiOperation({
    operationId: 'putBackDatabaseRegression',
    summary: 'Put back what processes have of a loss that waits for a decision',
    description:
      'Every process begins within 2 seconds. Journals keep the last minutes only: see `JOURNAL_KEEP_MS`. One that waits for no decision, or was noticed before Postgres started the last time, gets 409.',
  })
  @ApiBody({ required: false })
  @ApiOkResponse({ standardSchema: regressionSchema, description: 'It is put back now.' })
  @ApiErrors(404, 409, 413, 415)
  putBack(
    @Param('id', { schema: pathId('regression') }) id: string,
    @Body({ schema: nothingSchema }) _: object,
    @CurrentActor() by: Actor,
  ): Promise<RegressionView> {
    return this.regressions.putBack(id, by);
  }

  @Post(':id/dismiss')
  @HttpCode(200)
  @ApiOperation({
    operationId: 'dismissDatabaseRegression',
    summary: 'Put back nothing of a loss that waits for a decision',
    description:
      'Keys, tokens, sessions and people whose end was lost are in force again. One that waits for no decision gets 409.',
  })
  @ApiBody({ required: false })
  @ApiOkResponse({ standardSchema: regressionSchema, description: 'Nothing is put back.' })
  @ApiErrors(404, 409, 413, 415)
  dismiss(
    @Param('id', { schema: pathId('regression') }) id: string,
    @Body({ schema: nothingSchema }) _: object,
    @CurrentActor() by: Actor,
  ): Promise<RegressionView> {
    return this.regressions.dismiss(id, by);
  }
}
