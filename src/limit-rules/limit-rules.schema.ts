import { z } from 'zod';
import { oneOf } from '../admin/fields.schema.js';
import { BUDGET_MODES, BUDGET_PERIODS, RESERVATIONS, UNPRICED_MODES } from './limit-rule.entity.js';
import { nanoOf } from './usd.js';

const MAX_BUDGETS = 4;
const MOST = 1_000_000_000;
const COUNT = `must be an integer from 0 to ${MOST}; null or absent for no limit`;
const TOKENS = `must be an integer from 0 to ${MOST * 1_000}`;
const USD =
  'must be an amount in USD as text, such as "500.00", at most "1000000000", with at most 9 decimal places';
const PERCENT = 'must be a list of at most 10 whole percentages from 1 to 100';
const NANO_MOST = 10n ** 18n;

const REQUESTS_ABOUT = 'Requests in any 60 seconds; null: unlimited.';
const TOKENS_ABOUT = 'Input and output tokens in any 60 seconds; null: unlimited.';
const CONCURRENT_ABOUT = 'Requests at the same time; null: unlimited.';
const USD_ABOUT = 'Amount in USD. Either this or `tokens`.';
const BUDGET_TOKENS_ABOUT = 'Input and output tokens. Either this or `usd`.';
const PERIOD_ABOUT = 'Days, weeks from Monday and months begin in `BUDGET_TIMEZONE`; `total` never ends.';
const MODE_ABOUT = '`block` rejects calls once the budget is spent; `warn` only counts.';
const ALERT_ABOUT = 'Percentages of the amount at which an alert is due.';
const UNPRICED_ABOUT =
  'Of budgets in USD: `reject` rejects calls of models without a price, whose cost is unknown; `allow` forwards them.';
const RESERVATION_ABOUT =
  'What a call reserves until its usage is known: `typical`, what such calls used lately; `worst`, the most that it can use, so that the budget is never exceeded.';
const USER_BUDGETS_ABOUT = 'At most 4 budgets of each end user.';

const count = (description: string, example: number) =>
  z.int(COUNT).min(0, COUNT).max(MOST, COUNT).nullish().default(null).meta({ description, example });

const newRatesShape = {
  requests_per_minute: count(REQUESTS_ABOUT, 600),
  tokens_per_minute: count(TOKENS_ABOUT, 200_000),
  concurrent_requests: count(CONCURRENT_ABOUT, 20),
};

const newBudget = z
  .strictObject({
    usd: z
      .string(USD)
      .regex(/^\d{1,10}(\.\d{1,9})?$/, USD)
      .refine((text) => (nanoOf(text) ?? NANO_MOST + 1n) <= NANO_MOST, USD)
      .optional()
      .meta({ description: USD_ABOUT, example: '500.00' }),
    tokens: z
      .int(TOKENS)
      .min(0, TOKENS)
      .max(MOST * 1_000, TOKENS)
      .optional()
      .meta({ description: BUDGET_TOKENS_ABOUT, example: 2_000_000 }),
    period: oneOf(BUDGET_PERIODS).meta({ description: PERIOD_ABOUT }),
    mode: oneOf(BUDGET_MODES).default('block').meta({ description: MODE_ABOUT }),
    alert_at: z
      .array(z.int(PERCENT).min(1, PERCENT).max(100, PERCENT), PERCENT)
      .max(10, PERCENT)
      .default([])
      .transform((list) => [...new Set(list)].sort((a, b) => a - b))
      .meta({ description: ALERT_ABOUT, example: [80, 100] }),
    unpriced: oneOf(UNPRICED_MODES).default('reject').meta({ description: UNPRICED_ABOUT }),
    reservation: oneOf(RESERVATIONS).default('typical').meta({ description: RESERVATION_ABOUT }),
  })
  .refine(({ usd, tokens }) => (usd === undefined) !== (tokens === undefined), {
    path: ['usd'],
    error: 'give either usd or tokens',
  })
  .meta({ id: 'NewBudget', example: { usd: '500.00', period: 'month' } });

const BUDGETS = `must be a list of at most ${MAX_BUDGETS} budgets`;

const newBudgets = z
  .array(newBudget, BUDGETS)
  .max(MAX_BUDGETS, BUDGETS)
  .refine(
    (list) => new Set(list.map(({ usd, period }) => `${usd === undefined} ${period}`)).size === list.length,
    'must not contain two budgets of the same kind and period',
  );

const LIMITS = 'must be an object of limits; null for none';
const newRates = z
  .strictObject(newRatesShape, LIMITS)
  .meta({ id: 'NewLimits', example: { requests_per_minute: 600 } });

const newPerUser = z
  .strictObject(
    {
      ...newRatesShape,
      budgets: newBudgets.default([]).meta({
        description: USER_BUDGETS_ABOUT,
        example: [{ usd: '2.00', period: 'day' }],
      }),
    },
    LIMITS,
  )
  .meta({ id: 'NewEndUserLimits', example: { requests_per_minute: 20 } });

const shownRatesShape = {
  requests_per_minute: z.int().nullable().meta({ description: REQUESTS_ABOUT, example: 600 }),
  tokens_per_minute: z.int().nullable().meta({ description: TOKENS_ABOUT, example: 200_000 }),
  concurrent_requests: z.int().nullable().meta({ description: CONCURRENT_ABOUT, example: 20 }),
};

const rates = z.strictObject(shownRatesShape).meta({ id: 'Limits' });
export type Rates = z.output<typeof rates>;

const budget = z
  .strictObject({
    usd: z.string().optional().meta({ description: USD_ABOUT, example: '500.00' }),
    tokens: z.int().optional().meta({ description: BUDGET_TOKENS_ABOUT, example: 2_000_000 }),
    period: z.enum(BUDGET_PERIODS).meta({ description: PERIOD_ABOUT }),
    mode: z.enum(BUDGET_MODES).meta({ description: MODE_ABOUT }),
    alert_at: z.array(z.int()).meta({ description: ALERT_ABOUT, example: [80, 100] }),
    unpriced: z.enum(UNPRICED_MODES).meta({ description: UNPRICED_ABOUT }),
    reservation: z.enum(RESERVATIONS).meta({ description: RESERVATION_ABOUT }),
  })
  .meta({ id: 'Budget' });
export type Budget = z.output<typeof budget>;

const EXAMPLE_BUDGETS: Budget[] = [
  { usd: '500.00', period: 'month', mode: 'block', alert_at: [], unpriced: 'reject', reservation: 'typical' },
];
const EXAMPLE_RATES: Rates = { requests_per_minute: 600, tokens_per_minute: null, concurrent_requests: 20 };
const EXAMPLE_PER_USER = { ...EXAMPLE_RATES, requests_per_minute: 20, budgets: [] };

const perUser = z
  .strictObject({
    ...shownRatesShape,
    budgets: z.array(budget).meta({ description: USER_BUDGETS_ABOUT, example: EXAMPLE_BUDGETS }),
  })
  .meta({ id: 'EndUserLimits' });
export type EndUserLimits = z.output<typeof perUser>;

const LIMITS_ABOUT = 'Limits of the calls together; null: none. What is absent or null is unlimited.';
const BUDGETS_ABOUT = 'At most 4 budgets of the calls together.';
const EACH_ABOUT =
  'Limits of each end user alone; null: none. The end user is what the caller says, so this protects honest callers from each other.';

/** Members of a team or key, for `POST` and `PATCH`. Absent: unchanged, or none in a new object. */
export const limitMembers = {
  limits: newRates
    .nullable()
    .optional()
    .meta({ description: LIMITS_ABOUT, example: { requests_per_minute: 600 } }),
  budgets: newBudgets
    .nullable()
    .optional()
    .meta({ description: BUDGETS_ABOUT, example: [{ usd: '500.00', period: 'month' }] }),
  each_end_user: newPerUser
    .nullable()
    .optional()
    .meta({ description: EACH_ABOUT, example: { requests_per_minute: 20 } }),
};

/** What a team or key allows; a member that is undefined stays as it is. */
export interface LimitMembers {
  limits?: Rates | null | undefined;
  budgets?: Budget[] | null | undefined;
  each_end_user?: EndUserLimits | null | undefined;
}

/** The same members as a response shows them. */
export const shownLimitMembers = {
  limits: rates.nullable().meta({ description: LIMITS_ABOUT, example: EXAMPLE_RATES }),
  budgets: z.array(budget).meta({ description: BUDGETS_ABOUT, example: EXAMPLE_BUDGETS }),
  each_end_user: perUser.nullable().meta({ description: EACH_ABOUT, example: EXAMPLE_PER_USER }),
};

export interface ShownLimits {
  limits: Rates | null;
  budgets: Budget[];
  each_end_user: EndUserLimits | null;
}
