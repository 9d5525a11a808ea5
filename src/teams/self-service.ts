import { z } from 'zod';
import { providerNames } from './provider-rules.js';

/** Of the column in Postgres. */
export const SELF_SERVICE_COMMENT = 'Keys that members may create for themselves; null for none.';

const ABOUT =
  'Lets members of the team (role `team`) create, rotate and revoke keys of their own; null: they can only revoke them.';
const KEYS = 'must be an integer from 1 to 100';
const DAYS = 'must be an integer from 1 to 3650';
const WITHIN = 'must be an integer from 1 to 90; null: keys need no sign-in';
const USD = 'must be an amount in USD as text, such as "50", with at most 9 decimal places; null for none';
const EXAMPLE = {
  keys_per_user: 3,
  max_days: 90,
  budget_usd_per_month: '50',
  providers: ['openai'],
  sign_in_within_days: null,
};

const about = {
  keys_per_user: { description: 'Keys that each member may have at a time.', example: 3 },
  max_days: { description: 'Longest lifetime of such a key, in days.', example: 90 },
  budget_usd_per_month: {
    description:
      'Budget of each such key in USD per month; null for none. With one, keys that ended in this month count too.',
    example: '50',
  },
  providers: {
    description:
      'Names of the providers and routes that such keys may use: of those named when the key was created, the ones named now. Null: all that the team may use, also those added later.',
    example: ['openai'],
  },
  sign_in_within_days: {
    description:
      'Such a key stops working so many days after its owner last signed in by single sign-on as a member or lead of the team, ' +
      'and works again when they do, until its `latest_expiry`. Keys that there are get so many days. Keys of named tokens, whose holders do not sign in, ' +
      'are not concerned. Null: keys need no sign-in.',
    example: 14,
  },
};

const settings = z
  .strictObject(
    {
      keys_per_user: z.int(KEYS).min(1, KEYS).max(100, KEYS).meta(about.keys_per_user),
      max_days: z.int(DAYS).min(1, DAYS).max(3_650, DAYS).meta(about.max_days),
      budget_usd_per_month: z
        .string(USD)
        .regex(/^\d{1,9}(\.\d{1,9})?$/, USD)
        .nullish()
        .default(null)
        .meta(about.budget_usd_per_month),
      providers: providerNames.nullish().default(null).meta(about.providers),
      sign_in_within_days: z
        .int(WITHIN)
        .min(1, WITHIN)
        .max(90, WITHIN)
        .nullish()
        .default(null)
        .meta(about.sign_in_within_days),
    },
    'must be an object with keys_per_user and max_days; null for none',
  )
  .meta({ id: 'NewSelfService', example: EXAMPLE });

const view = z
  .strictObject({
    keys_per_user: z.int().meta(about.keys_per_user),
    max_days: z.int().meta(about.max_days),
    budget_usd_per_month: z.string().nullable().meta(about.budget_usd_per_month),
    providers: z.array(z.string()).nullable().meta(about.providers),
    sign_in_within_days: z.int().nullable().meta(about.sign_in_within_days),
  })
  .meta({ id: 'SelfService' });
export type SelfService = z.output<typeof view>;

/** In the order of the schema: jsonb has an order of its own, and a change is found by comparison. */
export function shownSelfService(stored: SelfService): SelfService {
  const { keys_per_user, max_days, budget_usd_per_month } = stored;
  // Absent in settings of earlier versions.
  const { providers = null, sign_in_within_days = null } = stored;
  return { keys_per_user, max_days, budget_usd_per_month, providers, sign_in_within_days };
}

/** Member of a view. */
export const selfServiceView = {
  self_service: view.nullable().meta({ description: ABOUT, example: EXAMPLE }),
};

/** Member of a new team or of a change. */
export const selfServiceChange = {
  self_service: settings.nullable().optional().meta({ description: ABOUT, example: EXAMPLE }),
};
