import type { ResponseOf } from '../../api/client';
import type { Tone } from '../../display/status-badge';

export type Webhook = ResponseOf<'/admin/v1/webhooks/{id}', 'get'>;
export type Delivery = ResponseOf<'/admin/v1/webhooks/{id}/deliveries', 'get'>['data'][number];
export type EventType = Webhook['events'][number];

/** The events in words, in the order in which they are offered. */
export const EVENTS: Record<EventType, string> = {
  'budget.threshold': 'A budget has reached one of its percentages',
  'budget.exhausted': 'A budget is spent, or rejects calls',
  'provider.failing': 'Calls to a provider fail',
  'provider.recovered': 'Calls to a provider succeed again',
  'trust.failing': 'A trust rejects tokens that its issuer has signed',
  'issuer.unavailable': 'The public keys of an issuer cannot be read',
  'policy.failing': 'A policy does not decide about calls',
  'refusals.high': 'Many calls of a key are rejected, 429 not counted',
  'key.expiring': 'A key expires within 7 days',
  'price.missing': 'A model without a price was called',
  'journal.degraded': 'The journal of a gateway is degraded',
  'job.lost': 'What a batch, background response or video used stays unknown',
  'cost.unknown': 'The cost of many calls to a provider is unknown',
  'sink.lagging': 'A sink is behind',
};

export const DELIVERY_TONES: Record<Delivery['state'], Tone> = {
  waiting: 'neutral',
  delivered: 'good',
  retrying: 'warning',
  failed: 'bad',
};

/** The queries that show webhooks and what was sent to them. */
export const WEBHOOK_LISTS = ['webhooks', 'webhook-deliveries'];
