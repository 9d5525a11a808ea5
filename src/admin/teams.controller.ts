import { Body, Get, Post, Query } from '@nestjs/common';
import type { Page } from '../database/page.js';
import { TeamsService, type TeamView } from '../keys/teams.service.js';
import { AdminController } from './admin-controller.js';
import { checked } from './checked.js';
import { newTeamSchema, teamFilterSchema } from './teams.schema.js';

@AdminController('admin/v1/teams')
export class TeamsController {
  constructor(private readonly teams: TeamsService) {}

  @Get()
  list(@Query() query: unknown): Promise<Page<TeamView>> {
    return this.teams.list(checked(teamFilterSchema, query));
  }

  @Post()
  create(@Body() body: unknown): Promise<TeamView> {
    return this.teams.create(checked(newTeamSchema, body));
  }
}
