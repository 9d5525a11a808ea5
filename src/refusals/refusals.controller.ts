import { Get, Query } from '@nestjs/common';
import { CurrentScope, type Scope } from '../admin/access/access.js';
import { Roles } from '../admin/access/role.js';
import { AdminController } from '../admin/admin-controller.js';
import { ApiOkResponse, ApiOperation } from '../admin/api-decorators.js';
import { ApiErrors } from '../admin/api-errors.js';
import {
  type RefusalFilter,
  refusalFilterSchema,
  type RefusalPage,
  refusalPageSchema,
} from './refusals.schema.js';
import { RefusalsService } from './refusals.service.js';

@AdminController('refusals', {
  name: 'Refusals',
  description:
    'Requests that the gateway rejected, counted by minute. They were not forwarded and have no row in the log.',
})
export class RefusalsController {
  constructor(private readonly refusals: RefusalsService) {}

  @Get()
  @Roles(['viewer', 'team'])
  @ApiOperation({
    operationId: 'listRefusals',
    summary: 'Count the rejected requests by group, the largest first',
    description: 'Those of the last 24 hours without `from` and `to`.',
  })
  @ApiOkResponse({
    standardSchema: refusalPageSchema,
    description: 'The largest groups, or with `interval` the newest.',
  })
  @ApiErrors(404)
  list(
    @Query({ schema: refusalFilterSchema }) filter: RefusalFilter,
    @CurrentScope() scope: Scope,
  ): Promise<RefusalPage> {
    return this.refusals.list(filter, scope);
  }
}
