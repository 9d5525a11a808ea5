import { Delete, Get, Header, HttpCode, Param, Query } from '@nestjs/common';
import { type Access, CurrentAccess } from '../../admin/access/access.js';
import { Roles } from '../../admin/access/role.js';
import { AdminController } from '../../admin/admin-controller.js';
import { ApiNoContentResponse, ApiOkResponse, ApiOperation, ApiTags } from '../../admin/api-decorators.js';
import { ApiErrors } from '../../admin/api-errors.js';
import { nothingSchema, pathId } from '../../admin/fields.schema.js';
import type { Page } from '../../database/page.js';
import { type ClientSetup, clientSetupSchema } from './client-setup.schema.js';
import { ClientSetupService } from './client-setup.service.js';
import { type SignInFilter, signInFilterSchema, signInPageSchema, type SignInView } from './people.schema.js';
import { PeopleService } from './people.service.js';

@ApiTags('People')
@AdminController('sign-ins')
export class SignInsController {
  constructor(
    private readonly people: PeopleService,
    private readonly setup: ClientSetupService,
  ) {}

  @Get()
  @Roles(['viewer', 'team'])
  @ApiOperation({
    operationId: 'listSignIns',
    summary: 'List sign-ins from clients, newest first',
    description: 'Members and leads of teams get their own only. Ended ones are deleted after 90 days.',
  })
  @ApiOkResponse({ standardSchema: signInPageSchema, description: 'One page of sign-ins.' })
  list(
    @Query({ schema: signInFilterSchema }) filter: SignInFilter,
    @CurrentAccess() by: Access,
  ): Promise<Page<SignInView>> {
    return this.people.signIns(filter, by);
  }

  @Get('setup')
  @Roles(['viewer', 'team'])
  @Header('Cache-Control', 'no-store')
  @ApiOperation({
    operationId: 'getClientSetup',
    summary: 'Get what computers need for sign-ins from clients',
    description: 'Connects to `gateway_url` to read its certificate.',
  })
  @ApiOkResponse({ standardSchema: clientSetupSchema, description: 'Address and certificate.' })
  clientSetup(@Query({ schema: nothingSchema }) _: object): Promise<ClientSetup> {
    return this.setup.get();
  }

  @Delete(':id')
  @Roles(['viewer', 'team'])
  @HttpCode(204)
  @ApiOperation({
    operationId: 'endSignIn',
    summary: 'End a sign-in from a client',
    description:
      'Its tokens stop working on every replica within one second. Whoever is no administrator ends their own only.',
  })
  @ApiNoContentResponse({ description: 'Ended.' })
  @ApiErrors(404)
  end(@Param('id', { schema: pathId('sign-in') }) id: string, @CurrentAccess() by: Access): Promise<void> {
    return this.people.endSignIn(id, by);
  }
}
