import { z } from 'zod';
import {
  EXAMPLE_ID,
  id,
  oneOf,
  pageOf,
  paging,
  pathId,
  shownId,
  timestamp,
  version,
} from '../admin/fields.schema.js';
import { checkWebhookUrl } from './webhook-url.js';
import { EVENT_TYPES } from './event-types.js';
import { WEBHOOK_FORMATS } from './webhook.entity.js';

const EVENTS_ABOUT = 'Types of the events that are delivered.';
const FORMAT_ABOUT =
  '`standard`: JSON, signed as Standard Webhooks say; `slack`: a message for an incoming webhook of Slack, not signed.';
const EXAMPLE_URL = 'https://alerts.example.com/postern';
const EXAMPLE_EVENTS = ['budget.threshold', 'budget.exhausted'] as const;

/** The last attempt of the newest delivery that was attempted. */
const deliverySchema = z
  .strictObject({
    event_id: z.uuid().meta({ description: 'ID of the event: `webhook-id`.', example: EXAMPLE_ID }),
    type: z.enum(EVENT_TYPES).meta({ description: 'Type of the event.' }),
    state: z.enum(['delivered', 'retrying', 'failed']).meta({
      description: '`retrying`: another attempt follows; `failed`: the last attempt has failed.',
    }),
    attempts: z.int().meta({ description: 'Attempts so far, at most 8 in 24 hours.', example: 1 }),
    attempted_at: timestamp('When the last attempt began.'),
    next_attempt_at: timestamp('When the next attempt begins; null if none follows.').nullable(),
    status: z.int().nullable().meta({
      description: 'HTTP status of the last attempt; null without a response.',
      example: 204,
    }),
    error: z.string().nullable().meta({
      description: 'Why the last attempt failed, as in a test; null: it succeeded, or is under way.',
      example: null,
    }),
  })
  .meta({ id: 'WebhookDelivery' });

/** A webhook as the API shows it. */
export const webhookSchema = z
  .strictObject({
    id: shownId('the webhook'),
    url: z.string().meta({
      description:
        'Scheme, host and port of the URL, then `/…`: its path and query may be a credential and are not shown.',
      example: 'https://alerts.example.com/…',
    }),
    events: z.array(z.enum(EVENT_TYPES)).meta({ description: EVENTS_ABOUT, example: [...EXAMPLE_EVENTS] }),
    format: z.enum(WEBHOOK_FORMATS).meta({ description: FORMAT_ABOUT }),
    secret_state: z.enum(['sealed', 'unreadable']).meta({
      description:
        '`unreadable`: the URL and the secret were encrypted with another master key, so nothing can be delivered.',
    }),
    waiting: z.int().meta({ description: 'Events that are not delivered yet.', example: 0 }),
    last_delivery: deliverySchema
      .nullable()
      .meta({ description: 'The delivery that was attempted last; null: none yet.' }),
    version: version(),
    created_at: timestamp('When the webhook was created.'),
    updated_at: timestamp('When the webhook was last changed.'),
  })
  .meta({ id: 'Webhook' });
export type WebhookView = z.output<typeof webhookSchema>;

export const webhookPageSchema = pageOf('WebhookPage', webhookSchema);

/** The response to a creation, which is the only one with the secret. */
export const createdWebhookSchema = webhookSchema
  .extend({
    secret: z.string().nullable().meta({
      description: 'Verifies signatures. Shown only once; null for `slack`.',
      example: 'whsec_…',
    }),
  })
  .meta({ id: 'CreatedWebhook' });
export type CreatedWebhook = z.output<typeof createdWebhookSchema>;

const url = z
  .string(`must be a URL such as ${EXAMPLE_URL}`)
  .max(2_048, 'must be 2,048 characters at most')
  .transform((text, context): string => {
    const result = checkWebhookUrl(text);
    if (result.url !== undefined) return result.url;
    context.addIssue({ code: 'custom', message: result.problem });
    return z.NEVER;
  });

const EVENTS = `must be a list of one or more of ${EVENT_TYPES.join(', ')}`;
const events = z
  .array(oneOf(EVENT_TYPES), EVENTS)
  .min(1, EVENTS)
  .max(50, EVENTS)
  .transform((types) => [...new Set(types)]);

const URL_ABOUT =
  'Where events are sent with POST. By the rules for providers: `https` for public addresses, and no link-local or cloud metadata addresses.';

/** `POST /admin/v1/webhooks` */
export const newWebhookSchema = z
  .strictObject({
    url: url.meta({ description: URL_ABOUT, example: EXAMPLE_URL }),
    events: events.meta({ description: EVENTS_ABOUT, example: [...EXAMPLE_EVENTS] }),
    format: oneOf(WEBHOOK_FORMATS).default('standard').meta({ description: FORMAT_ABOUT }),
  })
  .meta({ id: 'NewWebhook', example: { url: EXAMPLE_URL, events: [...EXAMPLE_EVENTS] } });
export type NewWebhook = z.output<typeof newWebhookSchema>;

/** `PATCH /admin/v1/webhooks/:id`; the format stays, because the secret depends on it. */
export const webhookChangeSchema = z
  .strictObject({
    url: url.optional().meta({ description: URL_ABOUT, example: EXAMPLE_URL }),
    events: events.optional().meta({ description: EVENTS_ABOUT, example: [...EXAMPLE_EVENTS] }),
  })
  .meta({ id: 'WebhookChange', example: { events: [...EXAMPLE_EVENTS] } });
export type WebhookChange = z.output<typeof webhookChangeSchema>;

const STATES = ['waiting', 'delivered', 'retrying', 'failed'] as const;
const STATE_ABOUT =
  '`waiting`: not attempted yet; `retrying`: another attempt follows; `failed`: the last attempt has failed.';

export const listedDeliverySchema = deliverySchema
  .extend({
    created_at: timestamp('When the event occurred.'),
    data: z
      .record(z.string(), z.unknown())
      .meta({ description: '`data` of the message.', example: { team: 'search', key: 'ci' } }),
    state: z.enum(STATES).meta({ description: STATE_ABOUT }),
    attempted_at: timestamp('When the last attempt began; null: none yet.').nullable(),
    message: z.string().nullable().meta({
      description: 'Why the last attempt failed, in one sentence, with the remedy; null as `error`.',
      example: null,
    }),
  })
  .meta({ id: 'ListedWebhookDelivery' });
export type ListedDelivery = z.output<typeof listedDeliverySchema>;

export const deliveryPageSchema = pageOf('WebhookDeliveryPage', listedDeliverySchema);

/** `GET /admin/v1/webhooks/:id/deliveries` */
export const deliveryFilterSchema = z.strictObject({
  state: oneOf(STATES)
    .optional()
    .meta({ description: `Only deliveries in this state. ${STATE_ABOUT}` }),
  ...paging,
});
export type DeliveryFilter = z.output<typeof deliveryFilterSchema>;

/** `POST /admin/v1/webhooks/:id/replay` */
export const replaySchema = z
  .strictObject({
    event_id: id('event').meta({ description: 'ID of the event, from its delivery.', example: EXAMPLE_ID }),
  })
  .meta({ id: 'WebhookReplay', example: { event_id: EXAMPLE_ID } });
export type Replay = z.output<typeof replaySchema>;

/** What is wrong with a receiver, for programs. */
export const RECEIVER_ERRORS = [
  'name_not_resolved',
  'refused',
  'unreachable',
  'timeout',
  'tls',
  'forbidden_address',
  'not_http',
  'redirect',
  'unexpected_status',
] as const;

/** `POST /admin/v1/webhooks/:id/test` */
export const webhookTestSchema = z
  .strictObject({
    ok: z.boolean().meta({ description: 'True if the receiver responded with a status from 200 to 299.' }),
    code: z.enum(['ok', ...RECEIVER_ERRORS]).meta({ description: 'The result, for programs.' }),
    message: z.string().meta({
      description: 'The result in one sentence, with the remedy.',
      example: 'OK: the receiver accepted the event.',
    }),
    status: z.int().nullable().meta({
      description: 'HTTP status of the response; null if there was none.',
      example: 204,
    }),
    duration_ms: z.number().meta({ description: 'Milliseconds that the test took.', example: 85.2 }),
  })
  .meta({ id: 'WebhookTest' });
export type WebhookTestResult = z.output<typeof webhookTestSchema>;

export const webhookId = pathId('webhook');
