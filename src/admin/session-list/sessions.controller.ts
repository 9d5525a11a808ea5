import { Delete, Get, HttpCode, Param, Query } from '@nestjs/common';
import { type Access, CurrentAccess } from '../access/access.js';
import { Roles } from '../access/role.js';
import { AdminController } from '../admin-controller.js';
import { ApiNoContentResponse, ApiOkResponse, ApiOperation } from '../api-decorators.js';
import { ApiErrors } from '../api-errors.js';
import type { Page } from '../../database/page.js';
import { SessionListService } from './session-list.service.js';
import {
  type Ended,
  endedSchema,
  type SessionFilter,
  sessionFilterSchema,
  sessionId,
  sessionPageSchema,
  type SessionsOf,
  sessionsOfSchema,
  type SessionView,
} from './sessions.schema.js';

@AdminController('sessions', {
  name: 'Sessions',
  description: 'Who is signed in to the console. Administrators see all sessions, others their own.',
})
export class SessionsController {
  constructor(private readonly sessions: SessionListService) {}

  @Get()
  @Roles(['viewer', 'team'])
  @ApiOperation({ operationId: 'listSessions', summary: 'List sessions of the console, newest first' })
  @ApiOkResponse({ standardSchema: sessionPageSchema, description: 'One page of sessions.' })
  list(
    @Query({ schema: sessionFilterSchema }) filter: SessionFilter,
    @CurrentAccess() by: Access,
  ): Promise<Page<SessionView>> {
    return this.sessions.list(filter, by);
  }

  @Delete()
  @Roles(['viewer', 'team'])
  @ApiOperation({
    operationId: 'endSessions',
    summary: 'End all sessions of a user',
    description: 'They end at once, on every replica.',
  })
  @ApiOkResponse({ standardSchema: endedSchema, description: 'Ended.' })
  async endAll(
    @Query({ schema: sessionsOfSchema }) { actor }: SessionsOf,
    @CurrentAccess() by: Access,
  ): Promise<Ended> {
    return { ended: await this.sessions.endAllOf(actor, by) };
  }

  @Delete(':id')
  @Roles(['viewer', 'team'])
  @HttpCode(204)
  @ApiOperation({
    operationId: 'endSession',
    summary: 'End a session',
    description: 'It ends at once, on every replica.',
  })
  @ApiNoContentResponse({ description: 'Ended.' })
  @ApiErrors(404)
  end(@Param('id', { schema: sessionId }) id: string, @CurrentAccess() by: Access): Promise<void> {
    return this.sessions.end(id, by);
  }
}
