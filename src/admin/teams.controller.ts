import { Body, Get, Headers, Param, Patch, Post, Query, Res } from '@nestjs/common';
import type { Response } from 'express';
import type { Actor } from '../audit/actor.js';
import type { Page } from '../database/page.js';
import { revisionOf } from '../keys/revision.js';
import type { TeamView } from '../keys/team-view.js';
import { TeamsService } from '../keys/teams.service.js';
import { Acting } from './acting.js';
import { AdminController } from './admin-controller.js';
import { checked } from './checked.js';
import { entityTag, expectedRevisions } from './entity-tag.js';
import { newTeamSchema, teamChangeSchema, teamFilterSchema } from './teams.schema.js';

@AdminController('admin/v1/teams')
export class TeamsController {
  constructor(private readonly teams: TeamsService) {}

  @Get()
  list(@Query() query: unknown): Promise<Page<TeamView>> {
    return this.teams.list(checked(teamFilterSchema, query));
  }

  @Post()
  async create(
    @Body() body: unknown,
    @Acting() by: Actor,
    @Res({ passthrough: true }) res: Response,
  ): Promise<TeamView> {
    return tagged(res, await this.teams.create(checked(newTeamSchema, body), by));
  }

  @Get(':id')
  async get(@Param('id') id: string, @Res({ passthrough: true }) res: Response): Promise<TeamView> {
    return tagged(res, await this.teams.get(id));
  }

  /** With If-Match, a team that somebody else has changed meanwhile is left as it is: 409. */
  @Patch(':id')
  async update(
    @Param('id') id: string,
    @Headers('if-match') ifMatch: string | undefined,
    @Body() body: unknown,
    @Acting() by: Actor,
    @Res({ passthrough: true }) res: Response,
  ): Promise<TeamView> {
    const change = checked(teamChangeSchema, body);
    return tagged(res, await this.teams.update(id, change, by, expectedRevisions(ifMatch)));
  }
}

function tagged(res: Response, team: TeamView): TeamView {
  res.setHeader('ETag', entityTag(revisionOf(team)));
  return team;
}
