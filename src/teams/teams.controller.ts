import { Body, Get, Param, Patch, Post, Query } from '@nestjs/common';
import { ApiCreatedResponse, ApiOkResponse, ApiOperation } from '../admin/api-decorators.js';
import { type Access, CurrentAccess, CurrentScope, type Scope } from '../admin/access/access.js';
import { Roles } from '../admin/access/role.js';
import { CurrentActor } from '../admin/current-actor.js';
import { AdminController } from '../admin/admin-controller.js';
import { ApiErrors } from '../admin/api-errors.js';
import { ETAG, EntityTags, IfMatch } from '../admin/entity-tag.js';
import type { Page } from '../database/page.js';
import type { Expected } from '../database/revision.js';
import type { Actor } from '../platform/actor.js';
import {
  type NewTeam,
  newTeamSchema,
  type TeamChange,
  teamChangeSchema,
  type TeamFilter,
  teamFilterSchema,
  teamInPath,
  teamPageSchema,
  teamSchema,
  type TeamView,
} from './teams.schema.js';
import { TeamsService } from './teams.service.js';

/** With If-Match, a change of a team that has changed meanwhile gets 409. */
@AdminController('teams', { name: 'Teams', description: 'The teams that gateway keys belong to.' })
@EntityTags()
export class TeamsController {
  constructor(private readonly teams: TeamsService) {}

  @Get()
  @Roles(['viewer', 'team'])
  @ApiOperation({ operationId: 'listTeams', summary: 'List teams, newest first' })
  @ApiOkResponse({ standardSchema: teamPageSchema, description: 'One page of teams.' })
  list(
    @Query({ schema: teamFilterSchema }) filter: TeamFilter,
    @CurrentScope() scope: Scope,
  ): Promise<Page<TeamView>> {
    return this.teams.list(filter, scope);
  }

  @Post()
  @ApiOperation({ operationId: 'createTeam', summary: 'Create a team' })
  @ApiCreatedResponse({ standardSchema: teamSchema, description: 'The new team.', headers: ETAG })
  @ApiErrors(409, 413, 415)
  create(@Body({ schema: newTeamSchema }) team: NewTeam, @CurrentActor() by: Actor): Promise<TeamView> {
    return this.teams.create(team, by);
  }

  @Get(':id')
  @Roles(['viewer', 'team'])
  @ApiOperation({ operationId: 'getTeam', summary: 'Get a team' })
  @ApiOkResponse({ standardSchema: teamSchema, description: 'The team.', headers: ETAG })
  @ApiErrors(404)
  get(
    @Param('id', { schema: teamInPath }) nameOrId: string,
    @CurrentScope() scope: Scope,
  ): Promise<TeamView> {
    return this.teams.get(nameOrId, scope);
  }

  @Patch(':id')
  @Roles(['lead'])
  @ApiOperation({
    operationId: 'changeTeam',
    summary: 'Rename, disable or enable a team',
    description: 'Leads of the team may change `self_service` only.',
  })
  @ApiOkResponse({ standardSchema: teamSchema, description: 'The changed team.', headers: ETAG })
  @ApiErrors(404, 409, 413, 415)
  update(
    @Param('id', { schema: teamInPath }) nameOrId: string,
    @Body({ schema: teamChangeSchema }) change: TeamChange,
    @CurrentActor() by: Actor,
    @IfMatch() expected: Expected,
    @CurrentAccess() access: Access,
  ): Promise<TeamView> {
    if (access.role === 'lead') return this.teams.updateLed(nameOrId, change, access, expected);
    return this.teams.update(nameOrId, change, by, expected);
  }
}
