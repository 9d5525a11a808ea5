import { Body, Get, Param, ParseUUIDPipe, Put } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { AdminController } from '../../../src/admin/admin-controller.js';
import {
  type NewQuota,
  newQuotaSchema,
  quotaListSchema,
  quotaSchema,
  type QuotaView,
} from './quotas.schema.js';
import { QuotasService } from './quotas.service.js';

@ApiTags('Quotas')
@AdminController('quotas')
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
  set(
    @Param('team_id', ParseUUIDPipe) teamId: string,
    @Body({ schema: newQuotaSchema }) quota: NewQuota,
  ): Promise<QuotaView> {
    return this.quotas.set(teamId, quota.tokens_per_day);
  }
}
