import { z } from 'zod';
import { timestamp } from '../admin/fields.schema.js';
import { ENDPOINT_RULES, IDEMPOTENCY_MODES } from '../keys/gateway-key.entity.js';
import { limitSchema } from '../limits/limits.schema.js';
import { usageSchema } from '../usage/usage.schema.js';

/** A limit or budget that applies to the calls of this key, also one of its team. */
export const ownLimitSchema = limitSchema
  .pick({
    scope: true,
    resource: true,
    period: true,
    mode: true,
    unpriced: true,
    amount: true,
    credited: true,
    used: true,
    held: true,
    left: true,
    last_rejected_at: true,
    last_needed: true,
    state: true,
    resets_at: true,
  })
  .meta({ id: 'OwnLimit' });
export const OWN_LIMIT = Object.keys(ownLimitSchema.shape) as (keyof z.output<typeof ownLimitSchema>)[];

/** Of the group of the team, or of all calls. What others use is not for the holder of a key: it has no amounts. */
const sharedLimitSchema = limitSchema
  .pick({ scope: true, resource: true, period: true, providers: true, models: true, resets_at: true })
  .extend({
    blocking: z.boolean().meta({ description: 'Whether it rejects calls now.', example: false }),
  })
  .meta({ id: 'SharedLimit' });
export const SHARED_LIMIT = ['scope', 'resource', 'period', 'providers', 'models', 'resets_at'] as const;

const patterns = (description: string) =>
  z
    .array(z.string())
    .nullable()
    .meta({ description, example: ['gpt-5*'] });

/** `GET /self/v1/key` */
export const ownKeySchema = z
  .strictObject({
    name: z.string().meta({ description: 'Name of the key, unique within its team.', example: 'ci' }),
    prefix: z
      .string()
      .meta({ description: 'First characters of the secret that was sent.', example: 'ptn_4fGh7Kq2' }),
    team: z.string().meta({ description: 'Name of the team.', example: 'search' }),
    status: z.literal('active').meta({ description: 'Other keys get 401.' }),
    expires_at: timestamp('When the key expires; null if it never does.').nullable(),
    secret_expires_at: timestamp(
      'When the secret that was sent stops working, because the key was rotated; null if it was not.',
    ).nullable(),
    endpoints: z.enum(ENDPOINT_RULES).meta({ description: 'Endpoints that the key may use.' }),
    providers: z
      .array(z.string())
      .nullable()
      .meta({
        description: 'Providers and routes that the key may use; null: all that belong to no other team.',
        example: ['openai'],
      }),
    idempotency: z.enum(IDEMPOTENCY_MODES).meta({ description: 'What happens to `Idempotency-Key`.' }),
    models: patterns('Models that the key may use; null: all.'),
    team_models: patterns('Models that the team may use; null: all. A model must be on both lists.'),
    limits: z.array(ownLimitSchema).meta({
      description:
        'Limits and budgets that apply to calls with this key, those of its team included. Those of each end user of the key are shown for the end user in `x-gateway-user`.',
    }),
    shared_limits: z.array(sharedLimitSchema).meta({
      description:
        'Limits and budgets that calls with this key share with others: those of the group of its team, and of all calls. Without amounts.',
    }),
  })
  .meta({ id: 'OwnKey' });
export type OwnKey = z.output<typeof ownKeySchema>;

const ownSumsSchema = usageSchema
  .pick({
    calls: true,
    errors: true,
    calls_without_tokens: true,
    prompt_tokens: true,
    completion_tokens: true,
    total_tokens: true,
    unpriced_calls: true,
    cost_usd: true,
    unknown_calls: true,
    unknown_low_usd: true,
    unknown_high_usd: true,
    unbounded_calls: true,
    saved_usd: true,
  })
  .meta({ id: 'OwnUsageSums' });
export const OWN_SUMS = Object.keys(ownSumsSchema.shape) as (keyof z.output<typeof ownSumsSchema>)[];

/** `GET /self/v1/usage` */
export const ownUsageSchema = z
  .strictObject({
    time_zone: z
      .string()
      .meta({ description: 'Where days and months begin: `REPORT_TIMEZONE`.', example: 'UTC' }),
    as_of: timestamp('Calls recorded until then are counted.'),
    today: ownSumsSchema.meta({ description: 'Sums of the present day.' }),
    this_month: ownSumsSchema.meta({ description: 'Sums of the present month.' }),
    days: z
      .array(
        ownSumsSchema.extend({ day: z.string().meta({ description: 'Day.', example: '2026-01-31' }) }).meta({
          id: 'OwnUsageDay',
        }),
      )
      .meta({ description: 'Days with calls from `from` to `to`, newest first.' }),
  })
  .meta({ id: 'OwnUsage' });
export type OwnUsage = z.output<typeof ownUsageSchema>;

const DAY = 'must be a day such as 2026-01-31';
const MAX_DAYS = 366;
const day = () => z.iso.date(DAY);

/** The query of `GET /self/v1/usage` */
export const ownUsageQuerySchema = z
  .strictObject({
    from: day()
      .optional()
      .meta({ description: 'First of the days. Default: the first of the month.', example: '2026-01-01' }),
    to: day().optional().meta({ description: 'Last of the days. Default: today.', example: '2026-01-31' }),
  })
  .refine(({ from, to }) => from === undefined || to === undefined || from <= to, {
    path: ['from'],
    message: 'must not be later than to',
  })
  .refine(
    ({ from, to }) => {
      const today = new Date().toISOString();
      // Without `from`, the days begin with the first of the month.
      const first = from ?? `${today.slice(0, 7)}-01`;
      return (Date.parse(to ?? today) - Date.parse(first)) / 86_400_000 < MAX_DAYS;
    },
    {
      path: ['to'],
      message: `must be less than ${MAX_DAYS} days after from (default: the first of the month)`,
    },
  );
export type OwnUsageQuery = z.output<typeof ownUsageQuerySchema>;

/** An error, in the form of OpenAI. */
export const selfErrorSchema = z
  .strictObject({
    error: z
      .strictObject({
        message: z.string().meta({ description: 'What is wrong.', example: 'The gateway key is missing.' }),
        type: z.string().meta({ description: 'Kind of error.', example: 'authentication_error' }),
        param: z.null().meta({ description: 'Always null.' }),
        code: z.string().meta({ description: 'Error code for programs.', example: 'invalid_api_key' }),
      })
      .meta({ description: 'The error.' }),
  })
  .meta({ id: 'GatewayError' });
