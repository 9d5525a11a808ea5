import type { ResponseOf } from '../api/client';

type Key = ResponseOf<'/admin/v1/keys/{id}', 'get'>;
export type Rates = NonNullable<Key['limits']>;
export type FilteredRates = Key['filtered_limits'][number];
/** `count_from` matters to a budget that is new alone. */
export type Budget = Key['budgets'][number] & { count_from?: 'period' | 'now' };
/** Which calls count: null or absent, all. */
export type Filter = Pick<Budget, 'providers' | 'models'>;
/** Limits of each end user, or of each session. */
export type EachLimits = Rates & { budgets: Budget[] };

/** The limits and budgets of a team, key or group, or of the installation. */
export interface OwnLimits {
  limits: Rates | null;
  filtered_limits: FilteredRates[];
  budgets: Budget[];
  each_end_user: EachLimits | null;
  each_session: EachLimits | null;
}
/** What teams and keys have alike: models, limits and budgets. */
export type LimitMembers = Pick<Key, 'models' | 'stream_usage'> & OwnLimits;

export const NO_RATES: Rates = {
  requests_per_minute: null,
  tokens_per_minute: null,
  concurrent_requests: null,
};
export const NO_EACH: EachLimits = { ...NO_RATES, budgets: [] };
export const NO_LIMITS: OwnLimits = {
  limits: null,
  filtered_limits: [],
  budgets: [],
  each_end_user: null,
  each_session: null,
};
export const UNLIMITED: LimitMembers = { models: null, stream_usage: 'as_sent', ...NO_LIMITS };
export const NEW_BUDGET: Budget = {
  usd: '',
  period: 'month',
  mode: 'block',
  alert_at: [80, 100],
  unpriced: 'reject',
  reservation: 'typical',
};
/** Limits of which none is set are no limits. */
export function ratesOrNull(rates: Rates): Rates | null {
  const { requests_per_minute, tokens_per_minute, concurrent_requests } = rates;
  const isSet = [requests_per_minute, tokens_per_minute, concurrent_requests].some((value) => value !== null);
  return isSet ? { requests_per_minute, tokens_per_minute, concurrent_requests } : null;
}

export function eachOrNull(each: EachLimits): EachLimits | null {
  return ratesOrNull(each) === null && each.budgets.length === 0 ? null : each;
}

/** What tells the limits of one owner apart: "usd month", "requests minute", with what calls they are about. */
export function limitName(resource: string, period: string, { providers, models }: Filter): string {
  // The API sorts the names of a filter.
  const only = [providers, models].map((names) => (names ? [...new Set(names)].sort() : null));
  return [resource, period, ...(only.some((names) => names !== null) ? [JSON.stringify(only)] : [])].join(
    ' ',
  );
}

export function budgetName(budget: Budget): string {
  return limitName(budget.usd === undefined ? 'tokens' : 'usd', budget.period, budget);
}

/** An owner that has such a budget already keeps what was used of it. */
export function isSameBudget(a: Budget, b: Budget): boolean {
  return budgetName(a) === budgetName(b);
}

/** Members that the API compares and shows, from any owner. */
export function ownLimitsOf(owner: OwnLimits): OwnLimits {
  const { limits, filtered_limits, budgets, each_end_user, each_session } = owner;
  return { limits, filtered_limits, budgets, each_end_user, each_session };
}

/** The same of a team or key, with its models. */
export function limitMembersOf({ models, stream_usage, ...owner }: LimitMembers): LimitMembers {
  return { models, stream_usage, ...ownLimitsOf(owner) };
}
