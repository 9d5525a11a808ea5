import { Body, HttpCode, Post } from '@nestjs/common';
import { AdminController } from '../admin/admin-controller.js';
import { ApiOkResponse, ApiOperation } from '../admin/api-decorators.js';
import { ApiErrors } from '../admin/api-errors.js';
import { CurrentActor } from '../admin/current-actor.js';
import { LargestBody } from '../admin/json-body.interceptor.js';
import type { Actor } from '../platform/actor.js';
import { type Applied, appliedSchema, type Apply, applySchema, MAX_BYTES } from './apply.schema.js';
import { ApplyService } from './apply.service.js';

@AdminController('apply', { name: 'Apply', description: 'The whole configuration as one document.' })
export class ApplyController {
  constructor(private readonly service: ApplyService) {}

  @Post()
  @HttpCode(200)
  @LargestBody(MAX_BYTES)
  @ApiOperation({
    operationId: 'apply',
    summary: 'Change the configuration to match a document',
    description:
      'In one transaction: if anything is wrong, nothing is changed, and the response has every error.',
  })
  @ApiOkResponse({ standardSchema: appliedSchema, description: 'What was changed, or would be.' })
  @ApiErrors(409, 413, 415)
  apply(@Body({ schema: applySchema }) request: Apply, @CurrentActor() by: Actor): Promise<Applied> {
    return this.service.apply(request, by);
  }
}
