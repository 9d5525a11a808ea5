import type { WebhookTestResult, WebhookView } from './webhooks.schema.js';
import type { Attempt } from './webhook-sender.service.js';
import type { EventType } from './event-types.js';
import type { WebhookFormat } from './webhook.entity.js';

export interface WebhookRow {
  id: string;
  shown_url: string;
  events: EventType[];
  format: WebhookFormat;
  sealed: Buffer;
  version: number;
  created_at: Date;
  updated_at: Date;
  waiting: number;
  event_id: string | null;
  type: EventType;
  attempts: number;
  attempted_at: Date;
  delivered_at: Date | null;
  next_attempt_at: Date | null;
  status: number | null;
  error: string | null;
}

/** Webhooks, each with the delivery that was attempted last. */
export const SELECT_WEBHOOKS = `
  SELECT w.id, w.shown_url, w.events, w.format, w.sealed, w.version, w.created_at, w.updated_at,
         (SELECT count(*)::int FROM webhook_delivery WHERE webhook_id = w.id AND next_attempt_at IS NOT NULL) AS waiting,
         d.event_id, d.type, d.attempts, d.attempted_at, d.delivered_at, d.next_attempt_at, d.status, d.error
  FROM webhook w
  LEFT JOIN LATERAL (
    SELECT d.*, e.type FROM webhook_delivery d JOIN webhook_event e ON e.id = d.event_id
    WHERE d.webhook_id = w.id AND d.attempted_at IS NOT NULL
    ORDER BY d.attempted_at DESC LIMIT 1) d ON true`;

/** Lists each field, so that a new column is not shown by accident. */
export function webhookView(row: WebhookRow, isReadable: boolean): WebhookView {
  return {
    id: row.id,
    url: row.shown_url,
    events: row.events,
    format: row.format,
    secret_state: isReadable ? 'sealed' : 'unreadable',
    waiting: row.waiting,
    last_delivery: lastDelivery(row),
    version: row.version,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  };
}

function lastDelivery(row: WebhookRow): WebhookView['last_delivery'] {
  if (row.event_id === null) return null;
  return {
    event_id: row.event_id,
    type: row.type,
    state: deliveryState(row),
    attempts: row.attempts,
    attempted_at: row.attempted_at.toISOString(),
    next_attempt_at: row.next_attempt_at?.toISOString() ?? null,
    status: row.status,
    error: row.error,
  };
}

/** Of a delivery that was attempted. */
export function deliveryState({
  delivered_at,
  next_attempt_at,
}: Pick<WebhookRow, 'delivered_at' | 'next_attempt_at'>) {
  if (delivered_at !== null) return 'delivered';
  return next_attempt_at === null ? 'failed' : 'retrying';
}

/** What the audit log records of a webhook. */
export function settingsOf({ id, shown_url: url, events, format }: WebhookRow) {
  return { id, name: url, url, events, format };
}

/** What is wrong with a receiver, whatever it receives. */
export const RECEIVER_MESSAGES = {
  name_not_resolved: 'The host name of the URL does not resolve. Correct the URL or the DNS.',
  refused:
    'Connection refused: nothing listens at this host and port. Start the receiver, or correct the URL.',
  unreachable: 'The receiver could not be reached. Check the URL, the network and any egress proxy.',
  tls: 'The TLS handshake failed, or the certificate is not trusted. For a private CA, set NODE_EXTRA_CA_CERTS.',
  forbidden_address:
    'The URL leads to an address that is not allowed: link-local, a cloud metadata service, a public address with plain http, or this gateway.',
  not_http: 'The receiver does not respond with HTTP. Check the scheme and port of the URL.',
  redirect: 'The receiver redirects; Postern does not follow redirects. Use the final URL.',
};

const MESSAGES: Record<WebhookTestResult['code'], string> = {
  ...RECEIVER_MESSAGES,
  ok: 'OK: the receiver accepted the event.',
  timeout:
    'The receiver did not respond within 10 seconds. Let it respond first and process the event later.',
  unexpected_status: 'The receiver rejected the event: it must respond with a status from 200 to 299.',
};

const UNREADABLE =
  'The URL and the secret were encrypted with another master key. Restore MASTER_KEY, or create the webhook again.';

/** Why an attempt failed, with the remedy; null if it did not. @param error as it is stored */
export function messageOfAttempt(error: string | null): string | null {
  if (error === null) return null;
  return error in MESSAGES ? MESSAGES[error as keyof typeof MESSAGES] : UNREADABLE;
}

export function testResult({ status, error }: Attempt, durationMs: number): WebhookTestResult {
  const code = (error ?? 'ok') as WebhookTestResult['code'];
  return { ok: error === null, code, message: MESSAGES[code], status, duration_ms: Math.round(durationMs) };
}
