import { Get, Query, Res } from '@nestjs/common';
import type { Response } from 'express';
import { CurrentScope, type Scope } from '../admin/access/access.js';
import { Roles } from '../admin/access/role.js';
import { AdminController } from '../admin/admin-controller.js';
import { ApiOkResponse, ApiOperation } from '../admin/api-decorators.js';
import { type SearchRequest, type SearchResult, searchResultSchema, searchSchema } from './search.schema.js';
import { SearchService } from './search.service.js';

@AdminController('search', { name: 'Search', description: 'Finds objects by what a person has of them.' })
export class SearchController {
  constructor(private readonly search: SearchService) {}

  @Get()
  @Roles(['viewer', 'team'])
  @ApiOperation({
    operationId: 'search',
    summary: 'Find calls, teams, keys, models, end users and sessions',
    description:
      'Finds teams and keys by parts of their names in any case, and models of the last 30 days; calls, teams and keys by ' +
      'their IDs; keys by their first characters. IDs of providers, end users and sessions must be whole; the request log ' +
      'has no index for them, so it is read from its end for two seconds at most, until one is found. `log.from` says how ' +
      'far; send it as `before` to continue. Members of a team find what their teams have.',
  })
  @ApiOkResponse({ standardSchema: searchResultSchema, description: 'What was found.' })
  async find(
    @Query({ schema: searchSchema }) request: SearchRequest,
    @CurrentScope() scope: Scope,
    @Res({ passthrough: true }) res: Response,
  ): Promise<SearchResult> {
    const disconnected = new AbortController();
    res.once('close', () => disconnected.abort());
    return this.search.find(request, scope, disconnected.signal);
  }
}
