import { createHmac } from 'node:crypto';
import { usdOf } from '../limit-rules/usd.js';
import type { EventType } from './event-types.js';
import type { WebhookFormat } from './webhook.entity.js';

/** The type of the event that a test sends. */
export const TEST_TYPE = 'webhook.test';

/** An event as it is stored. */
export interface StoredEvent {
  id: string;
  type: EventType | typeof TEST_TYPE;
  created_at: Date;
  data: Record<string, unknown>;
}

/** A request to the receiver. Its body is the same in each attempt. */
export interface WebhookMessage {
  body: string;
  headers: Record<string, string>;
}

/** @param secret null for a format that is not signed @param now of the signature; receivers reject old ones */
export function messageOf(
  event: StoredEvent,
  format: WebhookFormat,
  secret: string | null,
  now = new Date(),
): WebhookMessage {
  const body = JSON.stringify(format === 'slack' ? { text: slackText(event) } : payloadOf(event));
  const headers = { 'content-type': 'application/json', 'user-agent': 'Postern' };
  if (secret === null) return { body, headers };
  const timestamp = Math.floor(now.getTime() / 1_000);
  return {
    body,
    headers: {
      ...headers,
      'webhook-id': event.id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': signatureOf(secret, event.id, timestamp, body),
    },
  };
}

/** Before the base64 of the key, as Standard Webhooks say. */
export const SECRET_PREFIX = 'whsec_';

/** The signature of Standard Webhooks 1.0.0, "Signature scheme". @param signed parts of what is signed, one after the other */
export function signatureOf(
  secret: string,
  id: string,
  timestamp: number,
  ...signed: (string | Buffer)[]
): string {
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64');
  const hmac = createHmac('sha256', key).update(`${id}.${timestamp}.`);
  for (const part of signed) hmac.update(part);
  return `v1,${hmac.digest('base64')}`;
}

/** What the receiver of the format `standard` gets. */
export function payloadOf({ type, created_at: at, data }: Omit<StoredEvent, 'id'>) {
  return { type, timestamp: at.toISOString(), data: shownData(type, data) };
}

/** Amounts of budgets are stored as counts, and times in milliseconds. */
function shownData(type: StoredEvent['type'], data: Record<string, unknown>): Record<string, unknown> {
  if (type !== 'budget.threshold' && type !== 'budget.exhausted') return data;
  const amount = BigInt(data.amount as string);
  const used = BigInt(data.used as string);
  const shown = (count: bigint) => (data.resource === 'usd' ? usdOf(count) : String(count));
  return {
    ...data,
    amount: shown(amount),
    used: shown(used),
    left: shown(amount > used ? amount - used : 0n),
    resets_at: data.resets_at === null ? null : new Date(Number(data.resets_at)).toISOString(),
  };
}

function slackText({ type, data }: StoredEvent): string {
  const shown = shownData(type, data);
  const text = (name: string) => escaped(String(shown[name]));
  switch (type) {
    case 'budget.threshold':
      return `${budgetName(shown)} has reached ${text('threshold')} %: ${amounts(shown)}.${reset(shown)}`;
    case 'budget.exhausted':
      return `${budgetName(shown)} is exhausted: ${amounts(shown)}.${shown.mode === 'block' ? ' Calls are rejected.' : ''}${reset(shown)}`;
    case 'provider.failing':
      return `Provider ${text('provider')} is failing: ${text('failures')} of its last ${text('calls')} calls${data.reason === null ? '' : `, mostly ${text('reason')}`}.`;
    case 'provider.recovered':
      return `Provider ${text('provider')} has recovered. It was failing since ${text('since')}.`;
    case 'key.expiring':
      return `Gateway key ${text('team')}/${text('key')}${data.prefix === null ? '' : ` (${text('prefix')}…)`} expires at ${text('expires_at')}.`;
    case 'price.missing':
      return `Model ${text('model')} of provider ${text('provider')} has no price: its calls have no cost.`;
    case 'journal.degraded':
      return `The journal of the gateway on ${text('host')} is degraded: ${text('reason')}`;
    case 'sink.lagging':
      return `The sink ${text('sink')} is ${text('lag_seconds')} s behind${data.last_error === null ? '' : `: ${text('last_error')}`}`;
    case 'refusals.high':
      return `${text('calls')} requests with gateway key ${text('team')}/${text('key')} were rejected in ${text('minutes')} minutes, most by ${text('code')}.`;
    case 'job.lost':
      return `What a ${text('kind')} at provider ${text('provider')} used stays unknown: ${text('problem')}. Its call is ${text('request_id')}.`;
    case 'cost.unknown':
      return `Of ${text('calls')} calls to provider ${text('provider')} on ${text('day')} the cost of ${text('unknown_calls')} is unknown: their usage was not read to the end.`;
    case 'trust.failing':
      return `Trust ${text('trust')} has rejected ${text('failures')} tokens in ${text('minutes')} minutes: ${text('reason')}.`;
    case 'issuer.unavailable':
      return `The keys of the issuer ${text('issuer')} cannot be read: ${text('reason')}.`;
    case 'policy.failing':
      return `The policy ${text('policy')} does not decide: ${text('reason')}. Its calls are ${data.on_failure === 'allow' ? 'forwarded' : 'rejected'}.`;
    case TEST_TYPE:
      return 'This is a test of a Postern webhook.';
  }
}

/**
 * A text that Slack shows as it is. Its control characters are escaped (Slack documentation, "Escaping text"). Slack makes
 * links of addresses in a text, and callers choose the names of models and end users: a zero-width space after each `.`,
 * `:` and `@` within a word leaves no address.
 */
function escaped(text: string): string {
  return text
    .replace(/[.:@](?=[\p{L}/])/gu, '$&\u200b')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;');
}

/** Events of earlier versions lack the group, the providers and the models. */
function budgetName(data: Record<string, unknown>): string {
  const { key, team, group, subject, scope, period } = data as Record<string, string | null>;
  const ofMany = group == null ? 'this gateway' : `group ${group}`;
  const owner = key === null ? (team === null ? ofMany : `team ${team}`) : `key ${team}/${key}`;
  const kind = scope?.endsWith('_session') === true ? 'session' : 'end user';
  const one = subject === null ? '' : ` for ${kind} ${subject}`;
  const calls = [data.providers, data.models].flatMap((names) => (names ?? []) as string[]).join(', ');
  const only = calls === '' ? '' : ` (only ${calls})`;
  return escaped(
    `The ${period === 'total' ? 'total budget' : `budget per ${period}`} of ${owner}${only}${one}`,
  );
}

function amounts({ used, amount, resource }: Record<string, unknown>): string {
  return `${used as string} of ${amount as string} ${resource === 'usd' ? 'USD' : 'tokens'} used`;
}

function reset({ resets_at: at }: Record<string, unknown>): string {
  return at === null ? '' : ` It resets at ${at as string}.`;
}
