import { Body, Get, Param, Put } from '@nestjs/common';
import { ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import { type Actor, AdminController, ApiErrors, CurrentActor } from '../../../src/index.js';
import {
  type NewQuota,
  newQuotaSchema,
  quotaListSchema,
  quotaSchema,
  type QuotaView,
  teamId,
} from './quotas.schema.js';
import { QuotasService } from './quotas.service.js';

@AdminController('quotas', { name: 'Quotas', description: 'How many tokens a team may use a day.' })
export class QuotasController {
  constructor(private readonly quotas: QuotasService) {}

  @Get()
  @ApiOperation({ operationId: 'listQuotas', summary: 'List quotas' })
  @ApiOkResponse({ standardSchema: quotaListSchema })
  async list(): Promise<{ data: QuotaView[] }> {
    return { data: await this.quotas.list() };
  }

  @Put(':team_id')
  @ApiOperation({ operationId: 'setQuota', summary: 'Set the quota of a team' })
  @ApiOkResponse({ standardSchema: quotaSchema })
  @ApiErrors(404, 413, 415)
  set(
    @Param('team_id', { schema: teamId }) id: string,
    @Body({ schema: newQuotaSchema }) quota: NewQuota,
    @CurrentActor() by: Actor,
  ): Promise<QuotaView> {
    return this.quotas.set(id, quota.tokens_per_day, by);
  }
}
