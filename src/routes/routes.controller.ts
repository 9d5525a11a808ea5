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
import { nothingSchema } from '../admin/fields.schema.js';
import type { Page } from '../database/page.js';
import type { Expected } from '../database/revision.js';
import type { Actor } from '../platform/actor.js';
import {
  type NewRoute,
  newRouteSchema,
  type RouteChange,
  routeChangeSchema,
  routeName,
  routePageSchema,
  routeSchema,
  type RouteView,
} from './routes.schema.js';
import { StoredRoutesService } from './stored-routes.service.js';

/** With If-Match, a change of a route that has changed meanwhile gets 409. */
@AdminController('routes', {
  name: 'Routes',
  description: 'Providers made of providers: a call that one of them rejects is sent to another.',
})
@EntityTags()
export class RoutesController {
  constructor(private readonly routes: StoredRoutesService) {}

  /** Not paged, because there are few routes. */
  @Get()
  @Roles(['viewer'])
  @ApiOperation({ operationId: 'listRoutes', summary: 'List all routes' })
  @ApiOkResponse({ standardSchema: routePageSchema, description: 'All routes.' })
  async list(@Query({ schema: nothingSchema }) _: object): Promise<Page<RouteView>> {
    return { data: await this.routes.list(), next_cursor: null };
  }

  @Post()
  @ApiOperation({
    operationId: 'createRoute',
    summary: 'Add a route',
    description: 'Its name must not be the name of a provider.',
  })
  @ApiCreatedResponse({ standardSchema: routeSchema, description: 'The new route.', headers: ETAG })
  @ApiErrors(409, 413, 415)
  create(@Body({ schema: newRouteSchema }) route: NewRoute, @CurrentActor() by: Actor): Promise<RouteView> {
    return this.routes.create(route, by);
  }

  @Get(':name')
  @Roles(['viewer'])
  @ApiOperation({ operationId: 'getRoute', summary: 'Get a route' })
  @ApiOkResponse({ standardSchema: routeSchema, description: 'The route.', headers: ETAG })
  @ApiErrors(404)
  get(@Param('name', { schema: routeName }) name: string): Promise<RouteView> {
    return this.routes.get(name);
  }

  @Patch(':name')
  @ApiOperation({ operationId: 'changeRoute', summary: 'Change a route' })
  @ApiOkResponse({ standardSchema: routeSchema, description: 'The changed route.', headers: ETAG })
  @ApiErrors(404, 409, 413, 415)
  update(
    @Param('name', { schema: routeName }) name: string,
    @Body({ schema: routeChangeSchema }) change: RouteChange,
    @CurrentActor() by: Actor,
    @IfMatch() expected: Expected,
  ): Promise<RouteView> {
    return this.routes.update(name, change, by, expected);
  }

  @Delete(':name')
  @HttpCode(204)
  @ApiOperation({ operationId: 'removeRoute', summary: 'Remove a route' })
  @ApiNoContentResponse({ description: 'Removed.' })
  @ApiErrors(404, 409)
  remove(
    @Param('name', { schema: routeName }) name: string,
    @CurrentActor() by: Actor,
    @IfMatch() expected: Expected,
  ): Promise<void> {
    return this.routes.remove(name, by, expected);
  }
}
