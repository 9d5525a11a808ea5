import { Body, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { Roles } from '../../admin/access/role.js';
import { AdminController } from '../../admin/admin-controller.js';
import { ApiOkResponse, ApiOperation } from '../../admin/api-decorators.js';
import { ApiErrors } from '../../admin/api-errors.js';
import { CurrentActor } from '../../admin/current-actor.js';
import { nothingSchema } from '../../admin/fields.schema.js';
import type { Page } from '../../database/page.js';
import type { Actor } from '../../platform/actor.js';
import {
  type EndedPerson,
  endedPersonSchema,
  type PersonFilter,
  personFilterSchema,
  personInPath,
  personPageSchema,
  personSchema,
  type PersonView,
  type ShownPerson,
  shownPersonSchema,
} from './people.schema.js';
import { PeopleService } from './people.service.js';

/** People who sign in by single sign-on. A person is an ID at the OpenID provider, never an e-mail address. */
@AdminController('people', {
  name: 'People',
  description: 'People who sign in by single sign-on, to the console or from a client.',
})
export class PeopleController {
  constructor(private readonly people: PeopleService) {}

  @Get()
  @Roles(['viewer'])
  @ApiOperation({ operationId: 'listPeople', summary: 'List people, newest first' })
  @ApiOkResponse({ standardSchema: personPageSchema, description: 'One page of people.' })
  list(@Query({ schema: personFilterSchema }) filter: PersonFilter): Promise<Page<PersonView>> {
    return this.people.list(filter);
  }

  @Get(':id')
  @Roles(['viewer'])
  @ApiOperation({ operationId: 'getPerson', summary: 'Get a person, with their keys and sign-ins' })
  @ApiOkResponse({ standardSchema: shownPersonSchema, description: 'The person.' })
  @ApiErrors(404)
  get(@Param('id', { schema: personInPath }) idOrEmail: string): Promise<ShownPerson> {
    return this.people.get(idOrEmail);
  }

  @Post(':id/end')
  @HttpCode(200)
  @ApiOperation({
    operationId: 'endPerson',
    summary: 'End a person who leaves',
    description:
      'They cannot sign in any more, their sessions of the console and sign-ins from clients end, and their own keys are revoked, on every replica within one second. Repeat it at will.',
  })
  @ApiOkResponse({ standardSchema: endedPersonSchema, description: 'The person, and what ended.' })
  @ApiErrors(404, 413, 415)
  end(
    @Param('id', { schema: personInPath }) idOrEmail: string,
    @Body({ schema: nothingSchema }) _: object,
    @CurrentActor() by: Actor,
  ): Promise<EndedPerson> {
    return this.people.end(idOrEmail, by);
  }

  @Post(':id/reopen')
  @HttpCode(200)
  @ApiOperation({
    operationId: 'reopenPerson',
    summary: 'Let a person sign in again',
    description:
      'This includes teams where their key of sign-ins was revoked. Keys that were revoked stay revoked.',
  })
  @ApiOkResponse({ standardSchema: personSchema, description: 'The person.' })
  @ApiErrors(404, 413, 415)
  reopen(
    @Param('id', { schema: personInPath }) idOrEmail: string,
    @Body({ schema: nothingSchema }) _: object,
    @CurrentActor() by: Actor,
  ): Promise<PersonView> {
    return this.people.reopen(idOrEmail, by);
  }

  @Post(':id/forget')
  @HttpCode(200)
  @ApiOperation({
    operationId: 'forgetPerson',
    summary: 'Remove the name and e-mail address of a person who was ended',
    description:
      'In the person, the names of their keys, the request log, the audit log and stored alerts. Their ID at the provider stays, so that they stay ended.',
  })
  @ApiOkResponse({ standardSchema: personSchema, description: 'The person.' })
  @ApiErrors(404, 409, 413, 415)
  forget(
    @Param('id', { schema: personInPath }) idOrEmail: string,
    @Body({ schema: nothingSchema }) _: object,
    @CurrentActor() by: Actor,
  ): Promise<PersonView> {
    return this.people.forget(idOrEmail, by);
  }
}
