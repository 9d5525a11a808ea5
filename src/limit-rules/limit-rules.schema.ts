import { z } from 'zod';
import { oneOf } from '../admin/fields.schema.js';
import { containsKeyFormat } from '../platform/api-key.js';
import {
  BUDGET_MODES,
  BUDGET_PERIODS,
  RESERVATIONS,
  UNPRICED_MODES,
  type UnpricedMode,
} from './limit-rule.entity.js';
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
const PERIOD_ABOUT =
  'Days, weeks from Monday and months begin in `BUDGET_TIMEZONE`; `total` never ends. Budgets of `each_session` have `session`, no others.';
const COUNT_FROM_ABOUT =
  'Of a budget that is new: `period` counts what was used since its day, week or month began, `now` does not. Those in total, of end users and of sessions count from now.';
const PROVIDERS_ABOUT = 'Only calls to these providers count; null or absent: all.';
const MODELS_ABOUT =
  'Only calls of these models count, as the provider gets their names, in any case; `*` stands for any characters. Null or absent: all.';
const NAMES = 'must be a list of 1 to 32 names; null or absent for all';
const PATTERN = 'must be 1 to 128 visible ASCII characters';
const MODE_ABOUT = '`block` rejects calls once the budget is spent; `warn` only counts.';
const ALERT_ABOUT = 'Percentages of the amount at which an alert is due.';
const UNPRICED_ABOUT =
  'Of budgets in USD: `reject` rejects calls of models without a price, whose cost is unknown; `allow` forwards them.';
const RESERVATION_ABOUT =
  'What a call reserves until its usage is known: `typical`, what such calls used lately; `worst`, the most that it can use, so that the budget is never exceeded.';
const USER_BUDGETS_ABOUT = 'At most 4 budgets of each end user.';
const SESSION_BUDGETS_ABOUT = 'At most 4 budgets of each session, in the period `session`.';

const count = (description: string, example: number) =>
  z.int(COUNT).min(0, COUNT).max(MOST, COUNT).nullish().default(null).meta({ description, example });

const RATE_NAMES = ['requests_per_minute', 'tokens_per_minute', 'concurrent_requests'] as const;
const newRatesShape = {
  requests_per_minute: count(REQUESTS_ABOUT, 600),
  tokens_per_minute: count(TOKENS_ABOUT, 200_000),
  concurrent_requests: count(CONCURRENT_ABOUT, 20),
};

/** Sorted, so that two filters can be compared. */
const names = (about: string, example: string[], what: string) =>
  z
    .array(
      z
        .string(what)
        .regex(/^[\x21-\x7e]{1,128}$/, what)
        .refine((one) => !containsKeyFormat(one), 'must not contain a gateway key'),
      NAMES,
    )
    .min(1, NAMES)
    .max(32, NAMES)
    .transform((list) => [...new Set(list)].sort())
    .nullish()
    .default(null)
    .meta({ description: about, example });
const filterShape = {
  providers: names(PROVIDERS_ABOUT, ['openai'], PATTERN),
  models: names(MODELS_ABOUT, ['claude-opus-*'], PATTERN),
};
const shownFilterShape = {
  providers: z
    .array(z.string())
    .nullish()
    .meta({ description: PROVIDERS_ABOUT, example: ['openai'] }),
  models: z
    .array(z.string())
    .nullish()
    .meta({ description: MODELS_ABOUT, example: ['claude-opus-*'] }),
};

const newBudgetOf = (id: string, unpriced: UnpricedMode) =>
  z
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
      unpriced: oneOf(UNPRICED_MODES).default(unpriced).meta({ description: UNPRICED_ABOUT }),
      reservation: oneOf(RESERVATIONS).default('typical').meta({ description: RESERVATION_ABOUT }),
      ...filterShape,
      count_from: oneOf(['period', 'now']).optional().meta({ description: COUNT_FROM_ABOUT, example: 'now' }),
    })
    .refine(({ usd, tokens }) => (usd === undefined) !== (tokens === undefined), {
      path: ['usd'],
      error: 'give either usd or tokens',
    })
    .meta({ id, example: { usd: '500.00', period: 'month' } });

const BUDGETS = `must be a list of at most ${MAX_BUDGETS} budgets for the same providers and models`;
const MAX_RULES = 32;
const MOST_RULES = `must not have more than ${MAX_RULES} entries`;

type Filter = { providers: string[] | null; models: string[] | null };
const textOf = (filter: Filter) => JSON.stringify([filter.providers, filter.models]);
const areDifferent = (list: readonly string[]) => new Set(list).size === list.length;

/** @param isOfSession budgets for each session have that period, others have any other */
const newBudgetsOf = (id: string, unpriced: UnpricedMode, isOfSession = false) =>
  z
    .array(newBudgetOf(id, unpriced), BUDGETS)
    .max(MAX_RULES, MOST_RULES)
    .refine((list) => list.every(({ period }) => (period === 'session') === isOfSession), {
      error: isOfSession
        ? 'must have the period session'
        : 'must not have the period session, which budgets of each_session have',
    })
    .refine(
      (list) =>
        list.every((one) => list.filter((other) => textOf(other) === textOf(one)).length <= MAX_BUDGETS),
      BUDGETS,
    )
    .refine(
      (list) => areDifferent(list.map((one) => `${one.usd === undefined} ${one.period} ${textOf(one)}`)),
      'must not contain two budgets of the same kind and period for the same providers and models',
    );

const LIMITS = 'must be an object of limits; null for none';
const newRates = z
  .strictObject(newRatesShape, LIMITS)
  .meta({ id: 'NewLimits', example: { requests_per_minute: 600 } });

const newEachOf = (id: string, budgets: ReturnType<typeof newBudgetsOf>, about: string, example: object) =>
  z
    .strictObject(
      { ...newRatesShape, budgets: budgets.default([]).meta({ description: about, example: [example] }) },
      LIMITS,
    )
    .meta({ id, example: { requests_per_minute: 20 } });

const newFilteredRates = z
  .array(
    z
      .strictObject({ ...filterShape, ...newRatesShape }, LIMITS)
      .refine(({ providers, models }) => providers !== null || models !== null, {
        path: ['providers'],
        error: 'name providers or models; limits of all calls belong in limits',
      })
      .refine((one) => RATE_NAMES.some((name) => one[name] !== null), {
        path: ['requests_per_minute'],
        error: 'give a limit, or leave this entry out',
      })
      .meta({ id: 'NewFilteredLimits', example: { providers: ['openai'], requests_per_minute: 60 } }),
    LIMITS,
  )
  .max(MAX_RULES, MOST_RULES)
  .refine((list) => areDifferent(list.map(textOf)), 'must not name the same providers and models twice');

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
    ...shownFilterShape,
  })
  .meta({ id: 'Budget' });
export type Budget = z.output<typeof budget>;
/** With what matters only when it is new. */
export type NewBudget = Budget & { count_from?: 'period' | 'now' | undefined };

const EXAMPLE_BUDGETS: Budget[] = [
  {
    usd: '500.00',
    period: 'month',
    mode: 'block',
    alert_at: [],
    unpriced: 'reject',
    reservation: 'typical',
  },
];
const EXAMPLE_RATES: Rates = { requests_per_minute: 600, tokens_per_minute: null, concurrent_requests: 20 };
const EXAMPLE_PER_USER = { ...EXAMPLE_RATES, requests_per_minute: 20, budgets: [] };
const EXAMPLE_PER_SESSION = {
  ...EXAMPLE_RATES,
  requests_per_minute: null,
  concurrent_requests: null,
  budgets: [{ ...EXAMPLE_BUDGETS[0]!, usd: '5.00', period: 'session' as const }],
};

const filteredRates = z
  .strictObject({ ...shownFilterShape, ...shownRatesShape })
  .meta({ id: 'FilteredLimits' });
export type FilteredRates = z.output<typeof filteredRates>;
const EXAMPLE_FILTERED = [{ providers: ['openai'], models: null, ...EXAMPLE_RATES }];

const eachShape = {
  ...shownRatesShape,
  budgets: z.array(budget).meta({ description: USER_BUDGETS_ABOUT, example: EXAMPLE_BUDGETS }),
};
const perUser = z.strictObject(eachShape).meta({ id: 'EndUserLimits' });
const perSession = z
  .strictObject({
    ...shownRatesShape,
    budgets: z.array(budget).meta({
      description: SESSION_BUDGETS_ABOUT,
      example: [{ ...EXAMPLE_BUDGETS[0]!, usd: '5.00', period: 'session' }],
    }),
  })
  .meta({ id: 'SessionLimits' });
/** Limits of each end user, or of each session. */
export type EachLimits = z.output<typeof perUser>;

const LIMITS_ABOUT = 'Limits of the calls together; null: none. What is absent or null is unlimited.';
const BUDGETS_ABOUT = 'Budgets of the calls together: at most 4 for the same providers and models.';
const FILTERED_ABOUT = 'Limits of the calls together to some providers or of some models.';
const EACH_ABOUT =
  'Limits of each end user alone; null: none. The end user is what the caller says, so this protects honest callers from each other.';
const SESSION_ABOUT =
  'Limits of each session alone, which a header of the call names; null: none. Calls that name none are not counted, so limit the key too.';

/**
 * Members of an owner of limits, for `POST` and `PATCH`. Absent: unchanged, or none in a new object.
 *
 * @param prefix of the names in OpenAPI
 * @param unpriced what budgets in USD do with calls without a price, unless they say
 */
function membersOf(prefix: string, unpriced: UnpricedMode) {
  const budgets = newBudgetsOf(`New${prefix}Budget`, unpriced);
  const sessionBudgets = newBudgetsOf(`New${prefix}SessionBudget`, unpriced, true);
  const users = newEachOf(`New${prefix}EndUserLimits`, budgets, USER_BUDGETS_ABOUT, {
    usd: '2.00',
    period: 'day',
  });
  const sessions = newEachOf(`New${prefix}SessionLimits`, sessionBudgets, SESSION_BUDGETS_ABOUT, {
    usd: '5.00',
    period: 'session',
  });
  return {
    limits: newRates
      .nullable()
      .optional()
      .meta({ description: LIMITS_ABOUT, example: { requests_per_minute: 600 } }),
    filtered_limits: newFilteredRates
      .nullable()
      .optional()
      .meta({ description: FILTERED_ABOUT, example: [{ providers: ['openai'], requests_per_minute: 60 }] }),
    budgets: budgets
      .nullable()
      .optional()
      .meta({ description: BUDGETS_ABOUT, example: [{ usd: '500.00', period: 'month' }] }),
    each_end_user: users
      .nullable()
      .optional()
      .meta({ description: EACH_ABOUT, example: { requests_per_minute: 20 } }),
    each_session: sessions
      .nullable()
      .optional()
      .meta({ description: SESSION_ABOUT, example: { budgets: [{ usd: '5.00', period: 'session' }] } }),
  };
}

/** Of a team or key. */
export const limitMembers = membersOf('', 'reject');
/** Of a group of teams, or of the installation: many share those, so calls without a price are not rejected by default. */
export const sharedLimitMembers = membersOf('Shared', 'allow');

/** What an owner allows; a member that is undefined stays as it is. */
export interface LimitMembers {
  limits?: Rates | null | undefined;
  filtered_limits?: FilteredRates[] | null | undefined;
  budgets?: NewBudget[] | null | undefined;
  each_end_user?: EachLimits | null | undefined;
  each_session?: EachLimits | null | undefined;
}

/** The same members as a response shows them. */
export const shownLimitMembers = {
  limits: rates.nullable().meta({ description: LIMITS_ABOUT, example: EXAMPLE_RATES }),
  filtered_limits: z.array(filteredRates).meta({ description: FILTERED_ABOUT, example: EXAMPLE_FILTERED }),
  budgets: z.array(budget).meta({ description: BUDGETS_ABOUT, example: EXAMPLE_BUDGETS }),
  each_end_user: perUser.nullable().meta({ description: EACH_ABOUT, example: EXAMPLE_PER_USER }),
  each_session: perSession.nullable().meta({ description: SESSION_ABOUT, example: EXAMPLE_PER_SESSION }),
};

export interface ShownLimits {
  limits: Rates | null;
  filtered_limits: FilteredRates[];
  budgets: NewBudget[];
  each_end_user: EachLimits | null;
  each_session: EachLimits | null;
}
