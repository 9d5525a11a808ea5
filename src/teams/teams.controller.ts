import { Body, Get, Param, Patch, Post, Query } from '@nestjs/common';
import type { Actor } from '../platform/actor.js';
import type { Page } from '../database/page.js';
import { type Expected, revisionOf } from '../database/revision.js';
import type { TeamView } from './team-view.js';
import { TeamsService } from './teams.service.js';
import { Acting } from '../admin/acting.js';
import { AdminController } from '../admin/admin-controller.js';
import { checked } from '../admin/checked.js';
import { EntityTags, IfMatch } from '../admin/entity-tag.js';
import { newTeamSchema, teamChangeSchema, teamFilterSchema } from './teams.schema.js';

/** With If-Match, a team that somebody else has changed meanwhile is left as it is: 409. */
@AdminController('teams')
@EntityTags(revisionOf)
export class TeamsController {
  constructor(private readonly teams: TeamsService) {}

  @Get()
  list(@Query() query: unknown): Promise<Page<TeamView>> {
    return this.teams.list(checked(teamFilterSchema, query));
  }

  @Post()
  create(@Body() body: unknown, @Acting() by: Actor): Promise<TeamView> {
    return this.teams.create(checked(newTeamSchema, body), by);
  }

  @Get(':id')
  get(@Param('id') id: string): Promise<TeamView> {
    return this.teams.get(id);
  }

  @Patch(':id')
  update(
    @Param('id') id: string,
    @Body() body: unknown,
    @Acting() by: Actor,
    @IfMatch() expected: Expected,
  ): Promise<TeamView> {
    return this.teams.update(id, checked(teamChangeSchema, body), by, expected);
  }
}
