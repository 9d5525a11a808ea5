import { Controller, Get, Header, Headers, Query, UseFilters, UseGuards, UsePipes } from '@nestjs/common';
import { ApiGroup, GATEWAY_KEY_SCHEME } from '../admin/admin-controller.js';
import {
  ApiBearerAuth,
  ApiHeader,
  ApiOkResponse,
  ApiOperation,
  ApiResponse,
} from '../admin/api-decorators.js';
import { nothingSchema } from '../admin/fields.schema.js';
import { AdminValidationPipe } from '../admin/validation.pipe.js';
import { type Caller, CurrentCaller } from '../auth/caller.js';
import { GatewayKeyGuard } from '../auth/gateway-key.guard.js';
import {
  type OwnRefusalFilter,
  ownRefusalFilterSchema,
  type OwnRefusals,
  ownRefusalsSchema,
} from '../refusals/refusals.schema.js';
import { RefusalsService } from '../refusals/refusals.service.js';
import { SelfErrorFilter } from './self-error.filter.js';
import { SelfRateGuard } from './self-rate.guard.js';
import {
  type OwnKey,
  ownKeySchema,
  type OwnUsage,
  type OwnUsageQuery,
  ownUsageQuerySchema,
  ownUsageSchema,
  selfErrorSchema,
} from './self.schema.js';
import { SelfService } from './self.service.js';

const USER = 'x-gateway-user';
const error = (status: number, description: string) =>
  ApiResponse({ status, description, standardSchema: selfErrorSchema });

/** What the holder of a gateway key may read with it, on every port. Nothing here takes the ID or name of a key. */
@ApiGroup({ name: 'Self', description: 'The own data of a gateway key, read with that key.' })
@Controller('self/v1')
@UseGuards(GatewayKeyGuard, SelfRateGuard)
@UsePipes(AdminValidationPipe)
@UseFilters(SelfErrorFilter)
@ApiBearerAuth(GATEWAY_KEY_SCHEME)
@error(400, 'The query is invalid.')
@error(401, 'The gateway key is missing, malformed, unknown, expired or revoked.')
@error(429, 'More than 60 requests in a minute; with `Retry-After`.')
@error(503, 'The database is unavailable; with `Retry-After`.')
export class SelfController {
  constructor(
    private readonly self: SelfService,
    private readonly refusals: RefusalsService,
  ) {}

  @Get('key')
  @Header('Cache-Control', 'no-store')
  @ApiOperation({
    operationId: 'getOwnKey',
    summary: 'Show the key of this request, with the limits and budgets that apply to it',
  })
  @ApiHeader({
    name: USER,
    required: false,
    description:
      'End user whose limits of this key are shown too. Without it, limits of end users are left out. Those of the team are never shown: they count the calls of its other keys.',
  })
  @ApiOkResponse({ standardSchema: ownKeySchema, description: 'The key.' })
  key(
    @CurrentCaller() { grant }: Caller,
    @Query({ schema: nothingSchema }) _: object,
    @Headers(USER) endUser?: string,
  ): Promise<OwnKey> {
    return this.self.key(grant, endUser || null);
  }

  @Get('usage')
  @Header('Cache-Control', 'no-store')
  @ApiOperation({ operationId: 'getOwnUsage', summary: 'Sum the calls of the key of this request' })
  @ApiOkResponse({ standardSchema: ownUsageSchema, description: 'Today, this month, and by day.' })
  usage(
    @CurrentCaller() { grant }: Caller,
    @Query({ schema: ownUsageQuerySchema }) query: OwnUsageQuery,
  ): Promise<OwnUsage> {
    return this.self.usage(grant, query);
  }

  @Get('refusals')
  @Header('Cache-Control', 'no-store')
  @ApiOperation({
    operationId: 'getOwnRefusals',
    summary: 'Count the rejected requests of the key of this request, by reason',
    description: 'Those of the last 24 hours without `from` and `to`.',
  })
  @ApiOkResponse({ standardSchema: ownRefusalsSchema, description: 'The most frequent reasons first.' })
  ownRefusals(
    @CurrentCaller() { grant }: Caller,
    @Query({ schema: ownRefusalFilterSchema }) range: OwnRefusalFilter,
  ): Promise<OwnRefusals> {
    return this.refusals.ofCaller(grant, range);
  }
}
