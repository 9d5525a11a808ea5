import { Get, Param, Query } from '@nestjs/common';
import { type Access, CurrentAccess } from '../../admin/access/access.js';
import { Roles } from '../../admin/access/role.js';
import { AdminController } from '../../admin/admin-controller.js';
import { ApiOkResponse, ApiOperation, ApiTags } from '../../admin/api-decorators.js';
import { ApiErrors } from '../../admin/api-errors.js';
import type { Page, PageRequest } from '../../database/page.js';
import { keyId } from '../../keys/keys.schema.js';
import {
  type IssuingTrust,
  tokenFilterSchema,
  tokenPageSchema,
  type TokenView,
} from './key-tokens.schema.js';
import { KeyTokens } from './key-tokens.service.js';

@ApiTags('Keys')
@AdminController('keys')
export class KeyTokensController {
  constructor(private readonly tokens: KeyTokens) {}

  @Get(':id/tokens')
  @Roles(['viewer', 'team'])
  @ApiOperation({
    operationId: 'listKeyTokens',
    summary: 'List the tokens of a key that work now, newest first, and the trusts that issue them',
    description: 'Members and leads of teams get the tokens of their own sign-ins only.',
  })
  @ApiOkResponse({ standardSchema: tokenPageSchema, description: 'One page of tokens.' })
  @ApiErrors(404)
  list(
    @Param('id', { schema: keyId }) id: string,
    @Query({ schema: tokenFilterSchema }) page: PageRequest,
    @CurrentAccess() access: Access,
  ): Promise<Page<TokenView> & { trusts: IssuingTrust[] }> {
    return this.tokens.list(id, page, access);
  }
}
