/** What webhooks can subscribe to. */
export const EVENT_TYPES = [
  'budget.threshold',
  'budget.exhausted',
  'provider.failing',
  'provider.recovered',
  'key.expiring',
  'price.missing',
  'journal.degraded',
  'sink.lagging',
  'refusals.high',
  'job.lost',
  'cost.unknown',
  'trust.failing',
  'issuer.unavailable',
  'policy.failing',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];
