import type { Budget } from '../../../limit-rules/limit-rules.schema.js';
import type { UsagePage } from '../../../usage/usage.schema.js';
import type { Api } from '../../api.js';
import type { Session } from '../../session.js';
import { count, money } from '../../table.js';
import { exactTime } from '../../times.js';
import { periodStart } from '../../../platform/zoned-time.js';
import { budgetKind } from './limit-options.js';

/** As usage is filtered. */
type Owner = { team: string } | { key: string };

/** Says of new budgets that they count from now, and what was used before, in days, weeks and months of the command. */
export async function noteBefore(
  { api, out }: Pick<Session, 'api' | 'out'>,
  owner: Owner,
  present: readonly Budget[],
  changed: readonly Budget[],
): Promise<void> {
  if (!out.printsNotes) return;
  const added = changed.filter(
    (budget) => !present.some((other) => budgetKind(other) === budgetKind(budget)),
  );
  for (const budget of added) {
    const { usd, tokens, period } = budget;
    const what = `The budget ${usd ?? `${tokens!}tokens`}/${period} counts from now`;
    const from = periodStart(period, new Date(), await api.zone());
    const before = from && (await usedSince(api, owner, from, budget));
    out.note(
      from === null || before === null
        ? `${what}.`
        : `${what}: ${before} used before, since ${exactTime(from.toISOString())}, does not count.`,
    );
  }
}

/** What was used of what a budget counts, or null for nothing. */
async function usedSince(api: Api, owner: Owner, from: Date, { usd }: Budget): Promise<string | null> {
  const query = { ...owner, group_by: 'team', from: from.toISOString(), limit: 1 };
  const { cost_usd: cost, total_tokens: tokens } = (await api.get<UsagePage>('usage', query)).totals!;
  if (usd === undefined) return tokens === 0 ? null : `${count(tokens)} tokens`;
  return cost === null || Number(cost) === 0 ? null : `$${money(cost)}`;
}
