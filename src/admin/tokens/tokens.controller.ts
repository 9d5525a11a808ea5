import { Body, Delete, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { type Access, CurrentAccess } from '../access/access.js';
import { Roles } from '../access/role.js';
import { AdminController } from '../admin-controller.js';
import { ApiCreatedResponse, ApiNoContentResponse, ApiOkResponse, ApiOperation } from '../api-decorators.js';
import { ApiErrors } from '../api-errors.js';
import { CurrentActor } from '../current-actor.js';
import type { Page } from '../../database/page.js';
import type { Actor } from '../../platform/actor.js';
import {
  issuedTokenSchema,
  type IssuedTokenView,
  type NewToken,
  newTokenSchema,
  type TokenFilter,
  tokenFilterSchema,
  tokenId,
  tokenPageSchema,
  type TokenView,
} from './tokens.schema.js';
import { TokensService } from './tokens.service.js';

@AdminController('tokens', {
  name: 'Tokens',
  description: 'Tokens of the admin API for people and programs, each with a role.',
})
export class TokensController {
  constructor(private readonly tokens: TokensService) {}

  @Get()
  @Roles(['viewer'])
  @ApiOperation({ operationId: 'listTokens', summary: 'List tokens of the admin API, newest first' })
  @ApiOkResponse({ standardSchema: tokenPageSchema, description: 'One page of tokens.' })
  list(@Query({ schema: tokenFilterSchema }) filter: TokenFilter): Promise<Page<TokenView>> {
    return this.tokens.list(filter);
  }

  @Post()
  @ApiOperation({
    operationId: 'createToken',
    summary: 'Create a token of the admin API',
    description:
      'The response contains the token, which is never shown again. A token that a user of single sign-on creates expires ' +
      'after at most 90 days, and none outlives the token that created it.',
  })
  @ApiCreatedResponse({ standardSchema: issuedTokenSchema, description: 'The new token.' })
  @ApiErrors(404, 409, 413, 415)
  create(
    @Body({ schema: newTokenSchema }) token: NewToken,
    @CurrentAccess() by: Access,
  ): Promise<IssuedTokenView> {
    return this.tokens.create(token, by);
  }

  @Delete(':id')
  @HttpCode(204)
  @ApiOperation({
    operationId: 'revokeToken',
    summary: 'Revoke a token of the admin API',
    description: 'It stops working at once, on every replica, and the sessions that it began end.',
  })
  @ApiNoContentResponse({ description: 'Revoked.' })
  @ApiErrors(404)
  revoke(@Param('id', { schema: tokenId }) id: string, @CurrentActor() by: Actor): Promise<void> {
    return this.tokens.revoke(id, by);
  }
}
