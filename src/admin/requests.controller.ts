import { Get, Param, Query } from '@nestjs/common';
import type { Page } from '../database/page.js';
import { TeamsService } from '../keys/teams.service.js';
import { RequestLogReader } from '../request-log/request-log.reader.js';
import type { RequestView } from '../request-log/request-view.js';
import { AdminController } from './admin-controller.js';
import { checked } from './checked.js';
import { requestFilterSchema } from './requests.schema.js';

@AdminController('admin/v1/requests')
export class RequestsController {
  constructor(
    private readonly reader: RequestLogReader,
    private readonly teams: TeamsService,
  ) {}

  @Get()
  async list(@Query() query: unknown): Promise<Page<RequestView>> {
    const { team, ...filter } = checked(requestFilterSchema, query);
    // The log knows teams by id only.
    return this.reader.list({ ...filter, team: team && (await this.teams.resolve(team)).id });
  }

  @Get(':id')
  get(@Param('id') id: string): Promise<RequestView> {
    return this.reader.get(id);
  }
}
