import { z } from 'zod';
import { oneOf } from '../admin/fields.schema.js';
import { BUDGET_MODES, BUDGET_PERIODS } from './limit-rule.entity.js';
import { nanoOf } from './usd.js';

const MOST_BUDGETS = 4;
const MOST = 1_000_000_000;
const COUNT = `must be an integer from 0 to ${MOST}; null or absent for no limit`;
const TOKENS = `must be an integer from 0 to ${MOST * 1_000}`;
const USD =
  'must be an amount in USD as text, such as "500.00", at most "1000000000", with at most 9 decimal places';
const PERCENT = 'must be a list of at most 10 whole percentages from 1 to 100';
const NANO_MOST = 10n ** 18n;

const count = (description: string) =>
  z.int(COUNT).min(0, COUNT).max(MOST, COUNT).nullish().default(null).meta({ description });

const ratesShape = {
  requests_per_minute: count('Requests in any 60 seconds.'),
  tokens_per_minute: count('Input and output tokens in any 60 seconds.'),
  concurrent_requests: count('Requests at the same time.'),
};

const budget = z
  .strictObject({
    usd: z
      .string(USD)
      .regex(/^\d{1,10}(\.\d{1,9})?$/, USD)
      .refine((text) => (nanoOf(text) ?? NANO_MOST + 1n) <= NANO_MOST, USD)
      .optional()
      .meta({ description: 'Amount in USD. Either this or `tokens`.', example: '500.00' }),
    tokens: z
      .int(TOKENS)
      .min(0, TOKENS)
      .max(MOST * 1_000, TOKENS)
      .optional()
      .meta({
        description: 'Input and output tokens. Either this or `usd`.',
      }),
    period: oneOf(BUDGET_PERIODS).meta({
      description: 'Days, weeks from Monday and months begin in `BUDGET_TIMEZONE`; `total` never ends.',
    }),
    mode: oneOf(BUDGET_MODES).default('block').meta({
      description: '`block` rejects calls once the budget is spent; `warn` only counts.',
    }),
    alert_at: z
      .array(z.int(PERCENT).min(1, PERCENT).max(100, PERCENT), PERCENT)
      .max(10, PERCENT)
      .default([])
      .transform((list) => [...new Set(list)].sort((a, b) => a - b))
      .meta({ description: 'Percentages of the amount at which an alert is due.' }),
  })
  .refine(({ usd, tokens }) => (usd === undefined) !== (tokens === undefined), {
    path: ['usd'],
    error: 'give either usd or tokens',
  })
  .meta({ id: 'Budget', example: { usd: '500.00', period: 'month' } });
export type Budget = z.output<typeof budget>;

const budgets = z
  .array(budget, `must be a list of at most ${MOST_BUDGETS} budgets`)
  .max(MOST_BUDGETS, `must be a list of at most ${MOST_BUDGETS} budgets`)
  .refine(
    (list) => new Set(list.map(({ usd, period }) => `${usd === undefined} ${period}`)).size === list.length,
    'must not contain two budgets of the same kind and period',
  );

const LIMITS = 'must be an object of limits; null for none';
const rates = z.strictObject(ratesShape, LIMITS).meta({ id: 'Limits' });
export type Rates = z.output<typeof rates>;

const perUser = z
  .strictObject({ ...ratesShape, budgets: budgets.default([]) }, LIMITS)
  .meta({ id: 'EndUserLimits' });
export type EndUserLimits = z.output<typeof perUser>;

const LIMITS_ABOUT = 'Limits of the calls together; null: none. What is absent or null is unlimited.';
const BUDGETS_ABOUT = 'At most 4 budgets of the calls together.';
const EACH_ABOUT =
  'Limits of each end user alone; null: none. The end user is what the caller says, so this protects honest callers from each other.';

/** Members of a team or key, for `POST` and `PATCH`. Absent: unchanged, or none in a new object. */
export const limitMembers = {
  limits: rates.nullable().optional().meta({ description: LIMITS_ABOUT }),
  budgets: budgets.nullable().optional().meta({ description: BUDGETS_ABOUT }),
  each_end_user: perUser.nullable().optional().meta({ description: EACH_ABOUT }),
};

/** What a team or key allows; a member that is undefined stays as it is. */
export interface LimitMembers {
  limits?: Rates | null | undefined;
  budgets?: Budget[] | null | undefined;
  each_end_user?: EndUserLimits | null | undefined;
}

/** The same members as a response shows them. */
export const shownLimitMembers = {
  limits: rates.nullable().meta({ description: LIMITS_ABOUT }),
  budgets: z.array(budget).meta({ description: BUDGETS_ABOUT }),
  each_end_user: perUser.nullable().meta({ description: EACH_ABOUT }),
};

export interface ShownLimits {
  limits: Rates | null;
  budgets: Budget[];
  each_end_user: EndUserLimits | null;
}
