import { Module } from '@nestjs/common';
import { ObservabilityModule } from '../observability/observability.module.js';
import { RequestLogModule } from '../request-log/request-log.module.js';
import { AlertScan } from './alert-scan.service.js';
import { JournalAlerts } from './journal-alerts.service.js';
import { WebhookDeliveries } from './webhook-delivery.service.js';
import { WebhookMetrics } from './webhook-metrics.js';
import { WebhooksAdminModule } from './webhooks-admin.module.js';

/** Finds alerts and delivers them, in the gateway. Alerts of budgets are stored by triggers (migrations). */
@Module({
  imports: [WebhooksAdminModule, ObservabilityModule, RequestLogModule],
  providers: [WebhookDeliveries, AlertScan, JournalAlerts, WebhookMetrics]
})
export class WebhooksModule {}
