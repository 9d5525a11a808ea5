// What an absent member of a document means for an object that exists.

export const NO_LIMITS = {
  limits: null,
  filtered_limits: null,
  budgets: null,
  each_end_user: null,
  each_session: null,
};
export const NO_TEAM_RULES = { self_service: null, providers: null, default_provider: null };
export const NO_AMOUNTS = {
  input: null,
  cached_input: null,
  cache_write: null,
  cache_write_1h: null,
  output: null,
  per_call: null,
  extra: null,
  tiers: null,
  note: null,
};
