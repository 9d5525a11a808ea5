import { z } from 'zod';
import { EXAMPLE_ID, timestamp } from '../admin/fields.schema.js';

/** What may need somebody, the most urgent first. */
const ATTENTION_KINDS = [
  'provider_missing',
  'provider_failing',
  'budget_blocking',
  'system_degraded',
  'transactions_lost',
  'secret_unreadable',
  'sink_failing',
  'webhook_failing',
  'key_expiring',
  'key_old_secret',
  'price_missing',
  'key_unused',
] as const;
export type AttentionKind = (typeof ATTENTION_KINDS)[number];

const itemSchema = z
  .strictObject({
    kind: z.enum(ATTENTION_KINDS).meta({
      description:
        '`provider_missing`: there is no provider yet, or all are disabled: calls get 503; it has no names; ' +
        '`provider_failing`: providers that fail most of their calls now, by the rule of the alert `provider.failing`; ' +
        '`budget_blocking`: budgets that are exhausted, or have rejected calls in this period; ' +
        '`system_degraded`: what `GET /health/ready` reports as not working; ' +
        '`transactions_lost`: times when Postgres lost what it had acknowledged, that wait for a decision, or in the last 7 days ' +
        'with changes that nobody applies again; ' +
        '`secret_unreadable`: providers, policies, webhooks and sinks whose secret was encrypted with another master key; ' +
        '`sink_failing`: sinks that do not take rows; `webhook_failing`: webhooks whose receiver does not take events; ' +
        '`key_expiring`: active keys that expire within 7 days; ' +
        '`key_old_secret`: rotated keys whose old secret was used in the last day and still works; ' +
        '`price_missing`: models called in the last 7 days that have no price; ' +
        '`key_unused`: active keys that nobody has used for 90 days.',
    }),
    level: z.enum(['critical', 'warning', 'info']).meta({
      description: '`critical`: calls fail or rows are at risk; `warning`: they will; `info`: worth a look.',
    }),
    count: z.int().meta({ description: 'How many there are; at least 1.', example: 2 }),
    names: z
      .array(
        z.strictObject({
          id: z.string().nullable().meta({
            description: 'ID of the key, limit, sink or webhook; null for what a name identifies.',
            example: EXAMPLE_ID,
          }),
          name: z.string().meta({ description: 'Its name; of a key `team/key`.', example: 'search/ci' }),
          since: timestamp('When it began, of a provider that fails; else null.').nullable(),
          detail: z.string().nullable().meta({
            description: 'More about it; null if there is no more.',
            example: '25 of 25 calls failed in the last minutes, mostly insufficient_quota',
          }),
        }),
      )
      .meta({ description: 'The first 5 of them, of `provider_failing` all; empty for what has no name.' }),
  })
  .meta({ id: 'AttentionItem' });
export type AttentionItem = z.output<typeof itemSchema>;

/** `GET /admin/v1/attention` */
export const attentionSchema = z
  .strictObject({
    data: z.array(itemSchema).meta({ description: 'The most urgent first; empty if all is well.' }),
  })
  .meta({ id: 'Attention' });
export type Attention = z.output<typeof attentionSchema>;
