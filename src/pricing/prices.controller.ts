import { Body, Delete, Get, HttpCode, Param, Patch, Post, Query } from '@nestjs/common';
import {
  ApiCreatedResponse,
  ApiNoContentResponse,
  ApiOkResponse,
  ApiOperation,
} from '../admin/api-decorators.js';
import { Roles } from '../admin/access/role.js';
import { AdminController } from '../admin/admin-controller.js';
import { ApiErrors } from '../admin/api-errors.js';
import { CurrentActor } from '../admin/current-actor.js';
import { ETAG, EntityTags, IfMatch } from '../admin/entity-tag.js';
import type { Page } from '../database/page.js';
import type { Expected } from '../database/revision.js';
import type { Actor } from '../platform/actor.js';
import {
  type MissingPrices,
  missingPricesSchema,
  type MissingQuery,
  missingQuerySchema,
  type NewPrice,
  newPriceSchema,
  type PriceChange,
  priceChangeSchema,
  type PriceFilter,
  priceFilterSchema,
  priceId,
  pricePageSchema,
  priceSchema,
  type PriceView,
  repricedSchema,
  type RepricedView,
  type Repricing,
  repricingSchema,
  type Resolution,
  resolutionSchema,
  type ResolveQuery,
  resolveQuerySchema,
} from './prices.schema.js';
import { MissingPricesService } from './missing-prices.service.js';
import { PricesService } from './prices.service.js';

/** With If-Match, a change of a price that has changed meanwhile gets 409. */
@AdminController('prices', { name: 'Prices', description: 'What models cost, and what calls cost with it.' })
@EntityTags()
export class PricesController {
  constructor(
    private readonly prices: PricesService,
    private readonly missingPrices: MissingPricesService,
  ) {}

  @Get()
  @Roles(['viewer'])
  @ApiOperation({ operationId: 'listPrices', summary: 'List prices, newest first' })
  @ApiOkResponse({ standardSchema: pricePageSchema, description: 'One page of prices.' })
  list(@Query({ schema: priceFilterSchema }) filter: PriceFilter): Promise<Page<PriceView>> {
    return this.prices.list(filter);
  }

  @Post()
  @ApiOperation({
    operationId: 'createPrice',
    summary: 'Set a price',
    description:
      'Custom prices come before the catalog. Rows without a cost of the last 7 days get theirs within minutes; for all others use `reprice`.',
  })
  @ApiCreatedResponse({ standardSchema: priceSchema, description: 'The new price.', headers: ETAG })
  @ApiErrors(409, 413, 415)
  create(@Body({ schema: newPriceSchema }) price: NewPrice, @CurrentActor() by: Actor): Promise<PriceView> {
    return this.prices.create(price, by);
  }

  @Get('resolve')
  @Roles(['viewer', 'team'])
  @ApiOperation({ operationId: 'resolvePrice', summary: 'Show which price applies to a call, and why' })
  @ApiOkResponse({ standardSchema: resolutionSchema, description: 'The price, or why there is none.' })
  resolve(@Query({ schema: resolveQuerySchema }) query: ResolveQuery): Promise<Resolution> {
    return this.prices.resolve(query);
  }

  @Get('missing')
  @Roles(['viewer'])
  @ApiOperation({
    operationId: 'listMissingPrices',
    summary: 'List models that were called this month, or in the last 7 days, and have no price',
    description: 'Read from the sums of usage, which have a call within 10 seconds.',
  })
  @ApiOkResponse({ standardSchema: missingPricesSchema, description: 'All such models.' })
  missing(@Query({ schema: missingQuerySchema }) query: MissingQuery): Promise<MissingPrices> {
    return this.missingPrices.list(query);
  }

  @Post('reprice')
  @HttpCode(200)
  @ApiOperation({
    operationId: 'reprice',
    summary: 'Compute the costs of stored calls again',
    description:
      'With the prices of now, as of the start of each call. Costs that the provider reported stay. A request works for about 10 seconds; if `next_cursor` is not null, send it again with that `cursor`, and add up the results. Commits every 5,000 rows, so that it can be interrupted and repeated; `dry_run` changes nothing.',
  })
  @ApiOkResponse({ standardSchema: repricedSchema, description: 'What changed.' })
  @ApiErrors(409, 413, 415)
  reprice(
    @Body({ schema: repricingSchema }) repricing: Repricing,
    @CurrentActor() by: Actor,
  ): Promise<RepricedView> {
    return this.prices.reprice(repricing, by);
  }

  @Get(':id')
  @Roles(['viewer', 'team'])
  @ApiOperation({ operationId: 'getPrice', summary: 'Get a price, such as the one of a call (`price_id`)' })
  @ApiOkResponse({ standardSchema: priceSchema, description: 'The price.', headers: ETAG })
  @ApiErrors(404)
  get(@Param('id', { schema: priceId }) id: string): Promise<PriceView> {
    return this.prices.get(id);
  }

  @Patch(':id')
  @ApiOperation({
    operationId: 'changePrice',
    summary: 'Change a custom price',
    description: 'Stored calls keep their cost until they are repriced.',
  })
  @ApiOkResponse({ standardSchema: priceSchema, description: 'The changed price.', headers: ETAG })
  @ApiErrors(404, 409, 413, 415)
  update(
    @Param('id', { schema: priceId }) id: string,
    @Body({ schema: priceChangeSchema }) change: PriceChange,
    @CurrentActor() by: Actor,
    @IfMatch() expected: Expected,
  ): Promise<PriceView> {
    return this.prices.update(id, change, by, expected);
  }

  @Delete(':id')
  @HttpCode(204)
  @ApiOperation({ operationId: 'removePrice', summary: 'Remove a custom price' })
  @ApiNoContentResponse({ description: 'Removed.' })
  @ApiErrors(404, 409)
  remove(
    @Param('id', { schema: priceId }) id: string,
    @CurrentActor() by: Actor,
    @IfMatch() expected: Expected,
  ): Promise<void> {
    return this.prices.remove(id, by, expected);
  }
}
