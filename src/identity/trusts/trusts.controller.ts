import { Body, Delete, Get, HttpCode, Param, Patch, Post, Query } from '@nestjs/common';
import { AdminController } from '../../admin/admin-controller.js';
import {
  ApiCreatedResponse,
  ApiNoContentResponse,
  ApiOkResponse,
  ApiOperation,
} from '../../admin/api-decorators.js';
import { Roles } from '../../admin/access/role.js';
import { ApiErrors } from '../../admin/api-errors.js';
import { CurrentActor } from '../../admin/current-actor.js';
import { ETAG, EntityTags, IfMatch } from '../../admin/entity-tag.js';
import type { Page, PageRequest } from '../../database/page.js';
import type { Expected } from '../../database/revision.js';
import type { Actor } from '../../platform/actor.js';
import { TokenTester } from './token-tester.service.js';
import {
  type NewTrust,
  newTrustSchema,
  type TestedToken,
  testedTokenSchema,
  type TokenVerdict,
  tokenVerdictSchema,
  type TrustChange,
  trustChangeSchema,
  trustFailuresSchema,
  type TrustFailuresView,
  trustFilterSchema,
  trustInPath,
  trustPageSchema,
  trustSchema,
  type TrustView,
} from './trusts.schema.js';
import { TrustsService } from './trusts.service.js';

/** With If-Match, a change of a trust that has changed meanwhile gets 409. */
@AdminController('trusts', {
  name: 'Trusts',
  description: 'Issuers whose identity tokens are exchanged for short-lived tokens of a key.',
})
@EntityTags()
export class TrustsController {
  constructor(
    private readonly trusts: TrustsService,
    private readonly tester: TokenTester,
  ) {}

  @Get()
  @Roles(['viewer'])
  @ApiOperation({ operationId: 'listTrusts', summary: 'List trusts, newest first' })
  @ApiOkResponse({ standardSchema: trustPageSchema, description: 'One page of trusts.' })
  list(@Query({ schema: trustFilterSchema }) page: PageRequest): Promise<Page<TrustView>> {
    return this.trusts.list(page);
  }

  @Post()
  @ApiOperation({
    operationId: 'createTrust',
    summary: 'Create a trust',
    description: 'Create trusts once all replicas run a version that knows them.',
  })
  @ApiCreatedResponse({ standardSchema: trustSchema, description: 'The new trust.', headers: ETAG })
  @ApiErrors(404, 409, 413, 415)
  create(@Body({ schema: newTrustSchema }) trust: NewTrust, @CurrentActor() by: Actor): Promise<TrustView> {
    return this.trusts.create(trust, by);
  }

  @Get(':id')
  @Roles(['viewer'])
  @ApiOperation({ operationId: 'getTrust', summary: 'Get a trust' })
  @ApiOkResponse({ standardSchema: trustSchema, description: 'The trust.', headers: ETAG })
  @ApiErrors(404)
  get(@Param('id', { schema: trustInPath }) nameOrId: string): Promise<TrustView> {
    return this.trusts.get(nameOrId);
  }

  @Get(':id/failures')
  @Roles(['viewer'])
  @ApiOperation({
    operationId: 'listTrustFailures',
    summary: 'List the last tokens that a trust has not accepted, newest first',
    description: 'Only of tokens that the issuer of the trust has signed. Others are counted in the metrics.',
  })
  @ApiOkResponse({ standardSchema: trustFailuresSchema, description: 'The failures.' })
  @ApiErrors(404)
  async failures(@Param('id', { schema: trustInPath }) nameOrId: string): Promise<TrustFailuresView> {
    return { data: await this.trusts.failures(nameOrId) };
  }

  @Post(':id/test')
  @HttpCode(200)
  @ApiOperation({
    operationId: 'testTrust',
    summary: 'Hold an identity token against a trust, check by check',
    description: 'Issues nothing. The networks of the trust are not checked.',
  })
  @ApiOkResponse({ standardSchema: tokenVerdictSchema, description: 'The verdict.' })
  @ApiErrors(404, 413, 415)
  async test(
    @Param('id', { schema: trustInPath }) nameOrId: string,
    @Body({ schema: testedTokenSchema }) { token }: TestedToken,
  ): Promise<TokenVerdict> {
    return this.tester.test(await this.trusts.find(nameOrId), token);
  }

  @Patch(':id')
  @ApiOperation({
    operationId: 'changeTrust',
    summary: 'Change, disable or enable a trust',
    description:
      'Disabling a trust stops all of its tokens, on every replica within one second. Those that have not expired work again once it is enabled: to end them, rotate the key or delete the trust.',
  })
  @ApiOkResponse({ standardSchema: trustSchema, description: 'The changed trust.', headers: ETAG })
  @ApiErrors(404, 409, 413, 415)
  update(
    @Param('id', { schema: trustInPath }) nameOrId: string,
    @Body({ schema: trustChangeSchema }) change: TrustChange,
    @CurrentActor() by: Actor,
    @IfMatch() expected: Expected,
  ): Promise<TrustView> {
    return this.trusts.update(nameOrId, change, by, expected);
  }

  @Delete(':id')
  @HttpCode(204)
  @ApiOperation({ operationId: 'removeTrust', summary: 'Remove a trust, and end all of its tokens' })
  @ApiNoContentResponse({ description: 'Removed.' })
  @ApiErrors(404, 409)
  remove(
    @Param('id', { schema: trustInPath }) nameOrId: string,
    @CurrentActor() by: Actor,
    @IfMatch() expected: Expected,
  ): Promise<void> {
    return this.trusts.remove(nameOrId, by, expected);
  }
}
