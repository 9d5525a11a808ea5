import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DeliveryListService } from './delivery-list.service.js';
import { WebhookDelivery } from './webhook-delivery.entity.js';
import { WebhookEvent } from './webhook-event.entity.js';
import { WebhookSecrets } from './webhook-secrets.service.js';
import { WebhookSender } from './webhook-sender.service.js';
import { Webhook } from './webhook.entity.js';
import { WebhooksController } from './webhooks.controller.js';
import { WebhooksService } from './webhooks.service.js';

/** The administration of the URLs that alerts go to. */
@Module({
  imports: [TypeOrmModule.forFeature([Webhook, WebhookEvent, WebhookDelivery])],
  controllers: [WebhooksController],
  providers: [WebhookSecrets, WebhookSender, WebhooksService, DeliveryListService],
  exports: [WebhooksService, WebhookSecrets, WebhookSender]
})
export class WebhooksAdminModule {}
