import { Get, Query } from '@nestjs/common';
import { ApiOkResponse, ApiOperation } from '../admin/api-decorators.js';
import { CurrentScope, type Scope } from '../admin/access/access.js';
import { Roles } from '../admin/access/role.js';
import { AdminController } from '../admin/admin-controller.js';
import { ApiErrors } from '../admin/api-errors.js';
import { type CountedUsage, type UsageFilter, usageFilterSchema, usagePageSchema } from './usage.schema.js';
import { UsageService } from './usage.service.js';

@AdminController('usage', { name: 'Usage', description: 'Sums over the request log.' })
export class UsageController {
  constructor(private readonly usage: UsageService) {}

  /** Calls, errors, tokens and bytes by the groups of `group_by`, newest period first. */
  @Get()
  @Roles(['viewer', 'team'])
  @ApiOperation({
    operationId: 'getUsage',
    summary: 'Sum calls, errors, tokens, costs and bytes by group, newest period first',
  })
  @ApiOkResponse({ standardSchema: usagePageSchema, description: 'One page of groups.' })
  @ApiErrors(404)
  list(
    @Query({ schema: usageFilterSchema }) filter: UsageFilter,
    @CurrentScope() scope: Scope,
  ): Promise<CountedUsage> {
    return this.usage.list(filter, scope);
  }
}
