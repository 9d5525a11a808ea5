import { Body, Header, HttpCode, Post } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '../admin/api-decorators.js';
import { Roles } from '../admin/access/role.js';
import { AdminController } from '../admin/admin-controller.js';
import { ApiErrors } from '../admin/api-errors.js';
import {
  type LeakedKey,
  leakedKeySchema,
  type LeakedSecret,
  leakedSecretSchema,
} from './leaked-key.schema.js';
import { LeakedKeyService } from './leaked-key.service.js';

@ApiTags('Keys')
@AdminController('keys')
export class LeakedKeyController {
  constructor(private readonly leaked: LeakedKeyService) {}

  /** Changes nothing. The secret is in the body, because URLs are logged on the way. */
  @Post('find')
  @Roles(['viewer'])
  @HttpCode(200)
  @Header('Cache-Control', 'no-store')
  @ApiOperation({
    operationId: 'findKey',
    summary: 'Find the key that a leaked secret or token belongs to',
    description:
      'Also finds revoked keys, rotated secrets, and tokens for a day after they end, unless their trust was deleted. The response does not contain the secret.',
  })
  @ApiOkResponse({ standardSchema: leakedKeySchema, description: 'The key.' })
  @ApiErrors(404, 413, 415)
  find(@Body({ schema: leakedSecretSchema }) { key }: LeakedSecret): Promise<LeakedKey> {
    return this.leaked.find(key);
  }
}
