import { Body, Delete, Get, HttpCode, Param, Patch, Post, Query } from '@nestjs/common';
import { AdminController } from '../admin/admin-controller.js';
import {
  ApiCreatedResponse,
  ApiNoContentResponse,
  ApiOkResponse,
  ApiOperation,
} from '../admin/api-decorators.js';
import { Roles } from '../admin/access/role.js';
import { ApiErrors } from '../admin/api-errors.js';
import { CurrentActor } from '../admin/current-actor.js';
import { ETAG, EntityTags, IfMatch } from '../admin/entity-tag.js';
import type { Page } from '../database/page.js';
import type { Expected } from '../database/revision.js';
import type { Actor } from '../platform/actor.js';
import {
  type GroupChange,
  groupChangeSchema,
  type GroupFilter,
  groupFilterSchema,
  groupInPath,
  groupPageSchema,
  groupSchema,
  type GroupView,
  type NewGroup,
  newGroupSchema,
} from './groups.schema.js';
import { GroupsService } from './groups.service.js';

/** With If-Match, a change of a group that has changed meanwhile gets 409. Members see the name of their group at the team. */
@AdminController('groups', { name: 'Groups', description: 'Groups of teams. A team is in at most one.' })
@EntityTags()
export class GroupsController {
  constructor(private readonly groups: GroupsService) {}

  @Get()
  @Roles(['viewer'])
  @ApiOperation({ operationId: 'listGroups', summary: 'List groups, newest first' })
  @ApiOkResponse({ standardSchema: groupPageSchema, description: 'One page of groups.' })
  list(@Query({ schema: groupFilterSchema }) filter: GroupFilter): Promise<Page<GroupView>> {
    return this.groups.list(filter);
  }

  @Post()
  @ApiOperation({ operationId: 'createGroup', summary: 'Create a group' })
  @ApiCreatedResponse({ standardSchema: groupSchema, description: 'The new group.', headers: ETAG })
  @ApiErrors(404, 409, 413, 415)
  create(@Body({ schema: newGroupSchema }) group: NewGroup, @CurrentActor() by: Actor): Promise<GroupView> {
    return this.groups.create(group, by);
  }

  @Get(':id')
  @Roles(['viewer'])
  @ApiOperation({ operationId: 'getGroup', summary: 'Get a group' })
  @ApiOkResponse({ standardSchema: groupSchema, description: 'The group.', headers: ETAG })
  @ApiErrors(404)
  get(@Param('id', { schema: groupInPath }) nameOrId: string): Promise<GroupView> {
    return this.groups.get(nameOrId);
  }

  @Patch(':id')
  @ApiOperation({ operationId: 'changeGroup', summary: 'Rename a group, or choose its teams' })
  @ApiOkResponse({ standardSchema: groupSchema, description: 'The changed group.', headers: ETAG })
  @ApiErrors(404, 409, 413, 415)
  update(
    @Param('id', { schema: groupInPath }) nameOrId: string,
    @Body({ schema: groupChangeSchema }) change: GroupChange,
    @CurrentActor() by: Actor,
    @IfMatch() expected: Expected,
  ): Promise<GroupView> {
    return this.groups.update(nameOrId, change, by, expected);
  }

  @Delete(':id')
  @HttpCode(204)
  @ApiOperation({
    operationId: 'removeGroup',
    summary: 'Remove a group that has no teams',
    description: 'A group with teams gets 409: first take them out of it.',
  })
  @ApiNoContentResponse({ description: 'Removed.' })
  @ApiErrors(404, 409)
  remove(
    @Param('id', { schema: groupInPath }) nameOrId: string,
    @CurrentActor() by: Actor,
    @IfMatch() expected: Expected,
  ): Promise<void> {
    return this.groups.remove(nameOrId, by, expected);
  }
}
