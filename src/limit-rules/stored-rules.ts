import type {
  BudgetMode,
  BudgetPeriod,
  LimitOwner,
  LimitPeriod,
  LimitResource,
  LimitScope,
  ReservationMode,
  UnpricedMode,
} from './limit-rule.entity.js';
import type {
  EachLimits,
  FilteredRates,
  LimitMembers,
  NewBudget,
  Rates,
  ShownLimits,
} from './limit-rules.schema.js';
import { nanoOf, usdOf } from './usd.js';

/** A rule without its owner. */
export interface RuleValues {
  scope: LimitScope;
  resource: LimitResource;
  period: LimitPeriod;
  /** Decimal text: bigint survives neither JSON nor the driver. */
  amount: string;
  mode: BudgetMode;
  alert_at: number[];
  unpriced: UnpricedMode;
  reservation: ReservationMode;
  providers: string[] | null;
  models: string[] | null;
  /** If it is new, it does not count what was used before. */
  counts_from_now?: boolean;
}

/** The providers and models of a rule in one text, which is the same for the same calls. */
export function filterText({ providers, models }: Pick<RuleValues, 'providers' | 'models'>): string {
  const part = (name: string, list: string[] | null) =>
    list === null ? [] : [`${name}=${list.map((one) => encodeURIComponent(one)).join(',')}`];
  return [...part('provider', providers), ...part('model', models)].join(' ');
}

const RATES = [
  ['requests_per_minute', 'requests', 'minute'],
  ['tokens_per_minute', 'tokens', 'minute'],
  ['concurrent_requests', 'concurrent_requests', 'at_once'],
] as const;

/** The rules of an owner as JSON, for a query of teams or keys. @param id the column with the owner's id */
export const rulesSql = (id: string) => `
  SELECT jsonb_agg(jsonb_build_object('scope', scope, 'resource', resource, 'period', period, 'amount', amount::text,
                                      'mode', mode, 'alert_at', alert_at, 'unpriced', unpriced,
                                      'reservation', reservation, 'providers', providers, 'models', models) ORDER BY id)
  FROM limit_rule WHERE scope_id = ${id} OR owner_id = ${id}`;

/** The members of an owner that these rules make. */
export function shownLimits(rules: readonly RuleValues[] | null, owner: LimitOwner): ShownLimits {
  const of = (scope: LimitScope) => (rules ?? []).filter((rule) => rule.scope === scope);
  const own = of(owner);
  const isFiltered = ({ providers, models }: RuleValues) => providers !== null || models !== null;
  const filters = new Map(own.filter(isFiltered).map((rule) => [filterText(rule), rule]));
  const filtered = [...filters].flatMap(([text, { providers, models }]): FilteredRates[] => {
    const found = ratesOf(own.filter((rule) => filterText(rule) === text));
    return found === null ? [] : [{ providers, models, ...found }];
  });
  const eachOf = (each: readonly RuleValues[]) =>
    each.length === 0 ? null : { ...(ratesOf(each) ?? NO_RATES), budgets: budgetsOf(each) };
  return {
    limits: ratesOf(own.filter((rule) => !isFiltered(rule))),
    filtered_limits: filtered,
    budgets: budgetsOf(own),
    each_end_user: eachOf(of(`${owner}_end_user`)),
    each_session: eachOf(of(`${owner}_session`)),
  };
}

/** The rules that these members make. */
export function rulesOf(limits: ShownLimits, owner: LimitOwner): RuleValues[] {
  const each = (members: EachLimits | null, scope: LimitScope) => [
    ...rateRules(members, scope),
    ...(members?.budgets ?? []).map((budget) => budgetRule(budget, scope)),
  ];
  return [
    ...rateRules(limits.limits, owner),
    ...limits.filtered_limits.flatMap((one) => rateRules(one, owner, one)),
    ...limits.budgets.map((budget) => budgetRule(budget, owner)),
    ...each(limits.each_end_user, `${owner}_end_user`),
    ...each(limits.each_session, `${owner}_session`),
  ];
}

/** The members after a change: one that is given replaces the present one. */
export function changedLimits(present: ShownLimits, change: LimitMembers): ShownLimits {
  return {
    limits: change.limits === undefined ? present.limits : change.limits,
    filtered_limits:
      change.filtered_limits === undefined ? present.filtered_limits : (change.filtered_limits ?? []),
    budgets: change.budgets === undefined ? present.budgets : (change.budgets ?? []),
    each_end_user: change.each_end_user === undefined ? present.each_end_user : change.each_end_user,
    each_session: change.each_session === undefined ? present.each_session : change.each_session,
  };
}

const LIMIT_MEMBERS = ['limits', 'filtered_limits', 'budgets', 'each_end_user', 'each_session'] as const;

/** The members of a change that make no rules. */
export function withoutLimits<T extends LimitMembers>(change: T): Omit<T, keyof LimitMembers> {
  const others = { ...change };
  for (const name of LIMIT_MEMBERS) delete others[name];
  return others;
}

/** True if both make the same rules, however they are written. */
export function sameLimits(a: ShownLimits, b: ShownLimits): boolean {
  const texts = [a, b].map((limits) =>
    rulesOf(limits, 'key')
      .map(({ counts_from_now: _, ...rule }) => JSON.stringify(rule))
      .sort(),
  );
  return JSON.stringify(texts[0]) === JSON.stringify(texts[1]);
}

export const NO_LIMITS: ShownLimits = {
  limits: null,
  filtered_limits: [],
  budgets: [],
  each_end_user: null,
  each_session: null,
};

const NO_RATES: Rates = { requests_per_minute: null, tokens_per_minute: null, concurrent_requests: null };

function ratesOf(rules: readonly RuleValues[]): Rates | null {
  const rates = { ...NO_RATES };
  let some = false;
  for (const [name, resource, period] of RATES) {
    const rule = rules.find((one) => one.resource === resource && one.period === period);
    if (rule !== undefined) [rates[name], some] = [Number(rule.amount), true];
  }
  return some ? rates : null;
}

function budgetsOf(rules: readonly RuleValues[]): NewBudget[] {
  return rules
    .filter(({ period }) => period !== 'minute' && period !== 'at_once')
    .map(({ resource, period, amount, mode, alert_at, unpriced, reservation, providers, models }) => ({
      ...(resource === 'usd' ? { usd: usdOf(BigInt(amount)) } : { tokens: Number(amount) }),
      period: period as BudgetPeriod,
      mode,
      alert_at,
      unpriced,
      reservation,
      ...(providers !== null && { providers }),
      ...(models !== null && { models }),
    }));
}

/** What only budgets choose. */
const DEFAULTS = { mode: 'block', unpriced: 'reject', reservation: 'typical' } as const;

function rateRules(
  rates: Rates | null,
  scope: LimitScope,
  { providers = null, models = null }: Partial<Pick<RuleValues, 'providers' | 'models'>> = {},
): RuleValues[] {
  if (rates === null) return [];
  return RATES.flatMap(([name, resource, period]) => {
    const amount = rates[name];
    return amount === null
      ? []
      : [{ scope, resource, period, amount: String(amount), ...DEFAULTS, alert_at: [], providers, models }];
  });
}

function budgetRule(
  { usd, tokens, period, count_from, ...chosen }: NewBudget,
  scope: LimitScope,
): RuleValues {
  const [resource, amount] =
    usd === undefined ? (['tokens', tokens] as const) : (['usd', nanoOf(usd)] as const);
  const { providers = null, models = null, ...others } = chosen;
  return {
    scope,
    resource,
    period,
    amount: String(amount),
    ...others,
    providers,
    models,
    ...(count_from === 'now' && { counts_from_now: true }),
  };
}
