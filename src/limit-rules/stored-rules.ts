import type {
  BudgetMode,
  BudgetPeriod,
  LimitPeriod,
  LimitResource,
  LimitScope,
  ReservationMode,
  UnpricedMode,
} from './limit-rule.entity.js';
import type { Budget, EndUserLimits, LimitMembers, Rates, ShownLimits } from './limit-rules.schema.js';
import { nanoOf, usdOf } from './usd.js';

export type Owner = 'team' | 'key';

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
                                      'reservation', reservation) ORDER BY id)
  FROM limit_rule WHERE scope_id = ${id}`;

/** The members of an owner that these rules make. */
export function shownLimits(rules: readonly RuleValues[] | null, owner: Owner): ShownLimits {
  const own = (rules ?? []).filter(({ scope }) => scope === owner);
  const each = (rules ?? []).filter(({ scope }) => scope !== owner);
  return {
    limits: ratesOf(own),
    budgets: budgetsOf(own),
    each_end_user: each.length === 0 ? null : { ...(ratesOf(each) ?? NO_RATES), budgets: budgetsOf(each) },
  };
}

/** The rules that these members make. */
export function rulesOf({ limits, budgets, each_end_user: each }: ShownLimits, owner: Owner): RuleValues[] {
  const scope: LimitScope = `${owner}_end_user`;
  return [
    ...rateRules(limits, owner),
    ...budgets.map((budget) => budgetRule(budget, owner)),
    ...rateRules(each, scope),
    ...(each?.budgets ?? []).map((budget) => budgetRule(budget, scope)),
  ];
}

/** The members after a change: one that is given replaces the present one. */
export function changedLimits(present: ShownLimits, change: LimitMembers): ShownLimits {
  return {
    limits: change.limits === undefined ? present.limits : change.limits,
    budgets: change.budgets === undefined ? present.budgets : (change.budgets ?? []),
    each_end_user: change.each_end_user === undefined ? present.each_end_user : change.each_end_user,
  };
}

/** The members of a change that make no rules. */
export function withoutLimits<T extends LimitMembers>(change: T): Omit<T, keyof LimitMembers> {
  const { limits: _, budgets: __, each_end_user: ___, ...others } = change;
  return others;
}

/** True if both make the same rules, however they are written. */
export function sameLimits(a: ShownLimits, b: ShownLimits): boolean {
  const texts = [a, b].map((limits) =>
    rulesOf(limits, 'key')
      .map((rule) => JSON.stringify(rule))
      .sort(),
  );
  return JSON.stringify(texts[0]) === JSON.stringify(texts[1]);
}

export const NO_LIMITS: ShownLimits = { limits: null, budgets: [], each_end_user: null };

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

function budgetsOf(rules: readonly RuleValues[]): Budget[] {
  return rules
    .filter(({ period }) => period !== 'minute' && period !== 'at_once')
    .map(({ resource, period, amount, mode, alert_at, unpriced, reservation }) => ({
      ...(resource === 'usd' ? { usd: usdOf(BigInt(amount)) } : { tokens: Number(amount) }),
      period: period as BudgetPeriod,
      mode,
      alert_at,
      unpriced,
      reservation,
    }));
}

/** What only budgets choose. */
const DEFAULTS = { mode: 'block', unpriced: 'reject', reservation: 'typical' } as const;

function rateRules(rates: Rates | EndUserLimits | null, scope: LimitScope): RuleValues[] {
  if (rates === null) return [];
  return RATES.flatMap(([name, resource, period]) => {
    const amount = rates[name];
    return amount === null
      ? []
      : [{ scope, resource, period, amount: String(amount), ...DEFAULTS, alert_at: [] }];
  });
}

function budgetRule({ usd, tokens, period, ...chosen }: Budget, scope: LimitScope): RuleValues {
  const [resource, amount] =
    usd === undefined ? (['tokens', tokens] as const) : (['usd', nanoOf(usd)] as const);
  return { scope, resource, period, amount: String(amount), ...chosen };
}
