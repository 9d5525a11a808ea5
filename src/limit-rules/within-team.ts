import { BUDGET_PERIODS, type BudgetPeriod } from './limit-rule.entity.js';
import type { Budget, Rates, ShownLimits } from './limit-rules.schema.js';
import { filterText } from './stored-rules.js';
import { nanoOf } from './usd.js';

const RATES = ['requests_per_minute', 'tokens_per_minute', 'concurrent_requests'] as const;

/**
 * The first limit of a key that is above one of its team, or undefined. Those of the team hold in any case: this is for
 * keys whose limits are set by somebody who may not set those of the team.
 *
 * @returns its field, and the amount of the team
 */
export function aboveTeam(key: ShownLimits, team: ShownLimits): { field: string; most: string } | undefined {
  const eachOf = team.each_end_user;
  return (
    rateAbove('limits', key.limits, [team.limits]) ??
    budgetAbove('budgets', key.budgets, team.budgets) ??
    rateAbove('each_end_user', key.each_end_user, [eachOf, team.limits]) ??
    budgetAbove('each_end_user.budgets', key.each_end_user?.budgets ?? [], [
      ...(eachOf?.budgets ?? []),
      ...team.budgets,
    ])
  );
}

function rateAbove(field: string, own: Rates | null, of: readonly (Rates | null)[]) {
  for (const name of RATES)
    for (const team of of) {
      const [amount, most] = [own?.[name] ?? null, team?.[name] ?? null];
      if (amount !== null && most !== null && amount > most)
        return { field: `${field}.${name}`, most: String(most) };
    }
  return undefined;
}

/** A budget per day may not be above one of the team per day, week, month or in total that counts the same calls. */
function budgetAbove(field: string, own: readonly Budget[], team: readonly Budget[]) {
  for (const [i, budget] of own.entries())
    for (const of of team) {
      const isSame = (budget.usd === undefined) === (of.usd === undefined);
      if (!isSame || !countsAllOf(of, budget)) continue;
      if (lengthOf(budget.period) > lengthOf(of.period) || amountOf(budget) <= amountOf(of)) continue;
      const unit = of.usd === undefined ? `${of.tokens} tokens` : `${of.usd} USD`;
      const per = of.period === 'total' ? 'in total' : `per ${of.period}`;
      return { field: `${field}.${i}.${of.usd === undefined ? 'tokens' : 'usd'}`, most: `${unit} ${per}` };
    }
  return undefined;
}

/** One of the team for some providers or models says nothing of what a key may spend on others. */
function countsAllOf(of: Budget, budget: Budget): boolean {
  const [team, key] = [of, budget].map(({ providers = null, models = null }) =>
    filterText({ providers, models }),
  );
  return team === '' || team === key;
}

const lengthOf = (period: BudgetPeriod): number => BUDGET_PERIODS.indexOf(period);

function amountOf({ usd, tokens }: Budget): bigint {
  // What has passed the schema is an amount.
  return usd === undefined ? BigInt(tokens ?? 0) : nanoOf(usd)!;
}
