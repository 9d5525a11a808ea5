import { Body, Get, HttpCode, Param, Patch, Post, Query } from '@nestjs/common';
import { ApiOkResponse, ApiOperation } from '../admin/api-decorators.js';
import { CurrentScope, type Scope } from '../admin/access/access.js';
import { Roles } from '../admin/access/role.js';
import { AdminController } from '../admin/admin-controller.js';
import { ApiErrors } from '../admin/api-errors.js';
import { ETAG, EntityTags, IfMatch } from '../admin/entity-tag.js';
import { CurrentActor } from '../admin/current-actor.js';
import type { Expected } from '../database/revision.js';
import type { Page } from '../database/page.js';
import type { Actor } from '../platform/actor.js';
import {
  type InstallationChange,
  installationChangeSchema,
  type InstallationLimits,
  installationLimitsSchema,
  type LimitFilter,
  limitFilterSchema,
  limitId,
  limitPageSchema,
  type LimitPreview,
  type LimitPreviewResult,
  limitPreviewResultSchema,
  limitPreviewSchema,
  type LimitReset,
  limitResetSchema,
  limitSchema,
  type LimitView,
} from './limits.schema.js';
import { LimitsService } from './limits.service.js';

@AdminController('limits', {
  name: 'Limits',
  description:
    'Limits and budgets with what was used of them. They are set as members of teams and keys; those of all calls through the gateway at `/limits/installation`.',
})
@EntityTags()
export class LimitsController {
  constructor(private readonly limits: LimitsService) {}

  @Get()
  @Roles(['viewer', 'team'])
  @ApiOperation({ operationId: 'listLimits', summary: 'List limits and budgets with their use' })
  @ApiOkResponse({ standardSchema: limitPageSchema, description: 'One page of limits.' })
  @ApiErrors(404)
  list(
    @Query({ schema: limitFilterSchema }) filter: LimitFilter,
    @CurrentScope() scope: Scope,
  ): Promise<Page<LimitView>> {
    return this.limits.list(filter, scope);
  }

  @Get('installation')
  @Roles(['viewer'])
  @ApiOperation({
    operationId: 'getInstallationLimits',
    summary: 'Read the limits of the installation',
    description: 'Limits and budgets that all calls through this gateway share.',
  })
  @ApiOkResponse({ standardSchema: installationLimitsSchema, description: 'The limits.', headers: ETAG })
  installation(): Promise<InstallationLimits> {
    return this.limits.ofInstallation();
  }

  @Patch('installation')
  @ApiOperation({
    operationId: 'changeInstallationLimits',
    summary: 'Change the limits of the installation',
    description: 'Members that are absent stay as they are.',
  })
  @ApiOkResponse({ standardSchema: installationLimitsSchema, description: 'The limits.', headers: ETAG })
  @ApiErrors(409, 413, 415)
  changeInstallation(
    @Body({ schema: installationChangeSchema }) change: InstallationChange,
    @CurrentActor() by: Actor,
    @IfMatch() expected: Expected,
  ): Promise<InstallationLimits> {
    return this.limits.changeInstallation(change, by, { expected });
  }

  @Post('preview')
  @HttpCode(200)
  @ApiOperation({
    operationId: 'previewLimits',
    summary: 'Try budgets on the calls of the last 7 days',
    description: 'Says how many of them the budgets would have rejected. Stores nothing.',
  })
  @ApiOkResponse({ standardSchema: limitPreviewResultSchema, description: 'What they would have done.' })
  @ApiErrors(413, 415)
  preview(@Body({ schema: limitPreviewSchema }) preview: LimitPreview): Promise<LimitPreviewResult> {
    return this.limits.preview(preview);
  }

  @Post(':id/reset')
  @HttpCode(200)
  @ApiOperation({
    operationId: 'resetLimit',
    summary: 'Reset a budget',
    description:
      'Gives a budget its whole amount again for the rest of its period. What was spent stays recorded.',
  })
  @ApiOkResponse({ standardSchema: limitSchema, description: 'The budget.' })
  @ApiErrors(404, 413, 415)
  reset(
    @Param('id', { schema: limitId }) id: string,
    @Body({ schema: limitResetSchema }) reset: LimitReset,
    @CurrentActor() by: Actor,
  ): Promise<LimitView> {
    return this.limits.reset(id, reset, by);
  }
}
