import { z } from 'zod';
import { oneOf } from '../admin/fields.schema.js';
import { providerNames } from './provider-rules.js';

/** Of the column in Postgres. */
export const SIGN_IN_COMMENT = 'What keys of people who sign in from a client allow; null: nobody can.';

const ABOUT =
  'Lets members of the team sign in from a client, such as Claude Code, and says what their keys allow; null: they cannot. Changes apply to the keys that there are.';
const ENDPOINTS = ['inference', 'own', 'all'] as const;
const MINUTES = 'must be an integer from 5 to 720';
const DAYS = 'must be an integer from 1 to 90';
const USD = 'must be an amount in USD as text, such as "50", with at most 9 decimal places; null for none';
const EXAMPLE = {
  budget_usd_per_month: '50',
  providers: ['anthropic'],
  endpoints: 'inference',
  token_minutes: 60,
  days: 30,
};

const about = {
  budget_usd_per_month: {
    description:
      'Budget of each such key in USD per month; null for none. The key of a person stays when they sign in again.',
    example: '50',
  },
  providers: {
    description:
      'Names of the providers and routes that such keys may use; null: all that the team may use, also those added later.',
    example: ['anthropic'],
  },
  endpoints: {
    description:
      '`inference`: such keys may use the inference endpoints only; `own`: every endpoint at providers of the team; `all`: every ' +
      'endpoint.',
    example: 'inference',
  },
  token_minutes: {
    description: 'Lifetime of a token in minutes. Clients renew it by themselves.',
    example: 60,
  },
  days: { description: 'After how many days a person must sign in again.', example: 30 },
};

const settings = z
  .strictObject(
    {
      budget_usd_per_month: z
        .string(USD)
        .regex(/^\d{1,9}(\.\d{1,9})?$/, USD)
        .nullish()
        .default(null)
        .meta(about.budget_usd_per_month),
      providers: providerNames.nullish().default(null).meta(about.providers),
      endpoints: oneOf(ENDPOINTS).default('inference').meta(about.endpoints),
      token_minutes: z.int(MINUTES).min(5, MINUTES).max(720, MINUTES).default(60).meta(about.token_minutes),
      days: z.int(DAYS).min(1, DAYS).max(90, DAYS).default(30).meta(about.days),
    },
    'must be an object, {} for the defaults; null: nobody can sign in',
  )
  .meta({ id: 'NewSignInSettings', example: EXAMPLE });

const view = z
  .strictObject({
    budget_usd_per_month: z.string().nullable().meta(about.budget_usd_per_month),
    providers: z.array(z.string()).nullable().meta(about.providers),
    endpoints: z.enum(ENDPOINTS).meta(about.endpoints),
    token_minutes: z.int().meta(about.token_minutes),
    days: z.int().meta(about.days),
  })
  .meta({ id: 'SignInSettings' });
export type SignInSettings = z.output<typeof view>;

/** In the order of the schema: jsonb has an order of its own, and a change is found by comparison. */
export function shownSignIn(stored: SignInSettings): SignInSettings {
  const { budget_usd_per_month, providers, endpoints, token_minutes, days } = stored;
  return { budget_usd_per_month, providers, endpoints, token_minutes, days };
}

/** Member of a view. */
export const signInView = {
  sign_in: view.nullable().meta({ description: ABOUT, example: EXAMPLE }),
};

/** Member of a new team or of a change. */
export const signInChange = {
  sign_in: settings.nullable().optional().meta({ description: ABOUT, example: EXAMPLE }),
};
