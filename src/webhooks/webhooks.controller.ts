import { Body, Delete, Get, Header, HttpCode, Param, Patch, Post, Query } from '@nestjs/common';
import {
  ApiBody,
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
import { nothingSchema } from '../admin/fields.schema.js';
import type { Page } from '../database/page.js';
import type { Expected } from '../database/revision.js';
import type { Actor } from '../platform/actor.js';
import { DeliveryListService } from './delivery-list.service.js';
import {
  type CreatedWebhook,
  createdWebhookSchema,
  type DeliveryFilter,
  deliveryFilterSchema,
  deliveryPageSchema,
  type ListedDelivery,
  listedDeliverySchema,
  type NewWebhook,
  newWebhookSchema,
  type Replay,
  replaySchema,
  type WebhookChange,
  webhookChangeSchema,
  webhookId,
  webhookPageSchema,
  webhookSchema,
  type WebhookTestResult,
  webhookTestSchema,
  type WebhookView,
} from './webhooks.schema.js';
import { WebhooksService } from './webhooks.service.js';

/** With If-Match, a change of a webhook that has changed meanwhile gets 409. */
@AdminController('webhooks', {
  name: 'Webhooks',
  description: 'Where alerts are delivered: of budgets, expiring keys, missing prices and the journal.',
})
@EntityTags()
export class WebhooksController {
  constructor(
    private readonly webhooks: WebhooksService,
    private readonly deliveries: DeliveryListService,
  ) {}

  /** Not paged, because there are few webhooks. */
  @Get()
  @Roles(['viewer'])
  @ApiOperation({ operationId: 'listWebhooks', summary: 'List all webhooks with their last delivery' })
  @ApiOkResponse({ standardSchema: webhookPageSchema, description: 'All webhooks, newest first.' })
  async list(@Query({ schema: nothingSchema }) _: object): Promise<Page<WebhookView>> {
    return { data: await this.webhooks.list(), next_cursor: null };
  }

  @Post()
  @Header('Cache-Control', 'no-store')
  @ApiOperation({
    operationId: 'createWebhook',
    summary: 'Create a webhook',
    description: 'The response contains the secret that verifies signatures. It is not shown again.',
  })
  @ApiCreatedResponse({
    standardSchema: createdWebhookSchema,
    description: 'The new webhook.',
    headers: ETAG,
  })
  @ApiErrors(409, 413, 415)
  create(
    @Body({ schema: newWebhookSchema }) webhook: NewWebhook,
    @CurrentActor() by: Actor,
  ): Promise<CreatedWebhook> {
    return this.webhooks.create(webhook, by);
  }

  @Get(':id')
  @Roles(['viewer'])
  @ApiOperation({ operationId: 'getWebhook', summary: 'Get a webhook' })
  @ApiOkResponse({ standardSchema: webhookSchema, description: 'The webhook.', headers: ETAG })
  @ApiErrors(404)
  get(@Param('id', { schema: webhookId }) id: string): Promise<WebhookView> {
    return this.webhooks.get(id);
  }

  @Patch(':id')
  @ApiOperation({
    operationId: 'changeWebhook',
    summary: 'Change a webhook',
    description: 'Events that are not delivered yet go to the new URL.',
  })
  @ApiOkResponse({ standardSchema: webhookSchema, description: 'The changed webhook.', headers: ETAG })
  @ApiErrors(404, 409, 413, 415)
  update(
    @Param('id', { schema: webhookId }) id: string,
    @Body({ schema: webhookChangeSchema }) change: WebhookChange,
    @CurrentActor() by: Actor,
    @IfMatch() expected: Expected,
  ): Promise<WebhookView> {
    return this.webhooks.update(id, change, by, expected);
  }

  @Delete(':id')
  @HttpCode(204)
  @ApiOperation({
    operationId: 'removeWebhook',
    summary: 'Remove a webhook with its undelivered events',
  })
  @ApiNoContentResponse({ description: 'Removed.' })
  @ApiErrors(404, 409)
  remove(
    @Param('id', { schema: webhookId }) id: string,
    @CurrentActor() by: Actor,
    @IfMatch() expected: Expected,
  ): Promise<void> {
    return this.webhooks.remove(id, by, expected);
  }

  @Get(':id/deliveries')
  @Roles(['viewer'])
  @ApiOperation({
    operationId: 'listWebhookDeliveries',
    summary: 'List the deliveries of a webhook, newest event first',
  })
  @ApiOkResponse({ standardSchema: deliveryPageSchema, description: 'One page of deliveries.' })
  @ApiErrors(404)
  listDeliveries(
    @Param('id', { schema: webhookId }) id: string,
    @Query({ schema: deliveryFilterSchema }) filter: DeliveryFilter,
  ): Promise<Page<ListedDelivery>> {
    return this.deliveries.list(id, filter);
  }

  @Post(':id/replay')
  @HttpCode(200)
  @ApiOperation({
    operationId: 'replayWebhookEvent',
    summary: 'Send an event to a webhook again',
    description:
      'With the same ID and body, within a few seconds, also if it was delivered before. It is repeated as a new event is.',
  })
  @ApiOkResponse({
    standardSchema: listedDeliverySchema,
    description: 'The delivery, which is waiting again.',
  })
  @ApiErrors(404, 409, 413, 415)
  replay(
    @Param('id', { schema: webhookId }) id: string,
    @Body({ schema: replaySchema }) replay: Replay,
    @CurrentActor() by: Actor,
  ): Promise<ListedDelivery> {
    return this.deliveries.replay(id, replay, by);
  }

  /** Always 200: the body has the result of the test. */
  @Post(':id/test')
  @HttpCode(200)
  @ApiOperation({
    operationId: 'testWebhook',
    summary: 'Send an event of type webhook.test and report what is wrong',
    description:
      'The status is 200 also when the receiver fails: the body has the result. It is not repeated.',
  })
  @ApiBody({ required: false })
  @ApiOkResponse({ standardSchema: webhookTestSchema, description: 'The result.' })
  @ApiErrors(404, 409, 413, 415)
  test(
    @Param('id', { schema: webhookId }) id: string,
    @Body({ schema: nothingSchema }) _: object,
  ): Promise<WebhookTestResult> {
    return this.webhooks.test(id);
  }
}
