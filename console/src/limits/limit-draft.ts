import type { ResponseOf } from '../api/client';

type Key = ResponseOf<'/admin/v1/keys/{id}', 'get'>;
/** What teams and keys have alike: models, limits and budgets. */
export type LimitMembers = Pick<Key, 'models' | 'stream_usage'> & OwnLimits;
/** What groups and the installation have, too. */
export type OwnLimits = Pick<Key, 'limits' | 'budgets' | 'each_end_user' | 'each_session'>;
export type Rates = NonNullable<Key['limits']>;
export type Budget = Key['budgets'][number];
export type EndUserLimits = NonNullable<Key['each_end_user']>;

export const NO_RATES: Rates = {
  requests_per_minute: null,
  tokens_per_minute: null,
  concurrent_requests: null,
};
export const NO_LIMITS: OwnLimits = { limits: null, budgets: [], each_end_user: null, each_session: null };
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

export function endUserOrNull(each: EndUserLimits): EndUserLimits | null {
  return ratesOrNull(each) === null && each.budgets.length === 0 ? null : each;
}

/** Members that the API compares and shows, from any team or key. */
export function limitMembersOf({ models, stream_usage, ...limits }: LimitMembers): LimitMembers {
  return { models, stream_usage, ...ownLimitsOf(limits) };
}

/** Of any owner. */
export function ownLimitsOf({ limits, budgets, each_end_user, each_session }: OwnLimits): OwnLimits {
  return { limits, budgets, each_end_user, each_session };
}
