import { Body, Get, Post } from '@nestjs/common';
import { ApiCreatedResponse, ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import { CurrentActor } from '../../../src/admin/current-actor.js';
import { AdminController } from '../../../src/admin/admin-controller.js';
import { ApiErrors } from '../../../src/admin/api-errors.js';
import type { Page } from '../../../src/database/page.js';
import type { Actor } from '../../../src/platform/actor.js';
import { type NewQuota, newQuotaSchema, quotaPageSchema, type Quota, quotaSchema } from './quotas.schema.js';
import { QuotasService } from './quotas.service.js';

@AdminController('quotas', { name: 'Quotas', description: 'How much each team may use.' })
export class QuotasController {
  constructor(private readonly quotas: QuotasService) {}

  @Get()
  @ApiOperation({ operationId: 'listQuotas', summary: 'List quotas' })
  @ApiOkResponse({ standardSchema: quotaPageSchema, description: 'All quotas.' })
  list(): Page<Quota> {
    return { data: this.quotas.list(), next_cursor: null };
  }

  @Post()
  @ApiOperation({ operationId: 'grantQuota', summary: 'Set the quota of a team' })
  @ApiCreatedResponse({ standardSchema: quotaSchema, description: 'The quota.' })
  @ApiErrors(404, 413, 415)
  grant(@Body({ schema: newQuotaSchema }) quota: NewQuota, @CurrentActor() by: Actor): Promise<Quota> {
    return this.quotas.grant(quota, by);
  }
}
