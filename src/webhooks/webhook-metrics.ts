import { Injectable } from '@nestjs/common';
import { MetricsService } from '../observability/metrics.service.js';
import { WebhookDeliveries } from './webhook-delivery.service.js';

@Injectable()
export class WebhookMetrics {
  constructor({ counts }: WebhookDeliveries, { instruments }: MetricsService) {
    instruments.counter(
      'postern_webhook_deliveries_total',
      'Attempts to deliver events to webhooks: delivered; retrying, another attempt follows; failed, it was the last.',
      () => Object.entries(counts).map(([result, count]) => [{ result }, count] as const),
      'result',
    );
  }
}
