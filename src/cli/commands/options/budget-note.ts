import type { Budget } from '../../../limit-rules/limit-rules.schema.js';
import type { LimitView } from '../../../limits/limits.schema.js';
import type { Page } from '../../../database/page.js';
import { listPages } from '../../list-options.js';
import type { Session } from '../../session.js';
import { count, money } from '../../table.js';
import { budgetKind } from './limit-options.js';

/** As limits are filtered. */
type Owner =
  | { team: string }
  | { key: string }
  | { scope: 'installation' }
  | { scope: 'group'; group: string };

/** Says of new budgets from when they count, and what they count already. */
export async function noteBefore(
  { api, out }: Pick<Session, 'api' | 'out'>,
  owner: Owner,
  present: readonly Budget[],
  changed: readonly Budget[],
): Promise<void> {
  if (!out.printsNotes) return;
  const kinds = new Set(present.map(budgetKind));
  const added = changed.filter((budget) => !kinds.has(budgetKind(budget)));
  if (added.length === 0) return;
  const scope = 'scope' in owner ? owner.scope : 'key' in owner ? 'key' : 'team';
  const { data } = await listPages<Page<LimitView>>(
    api,
    'limits',
    'scope' in owner ? { scope } : { ...owner },
    {
      all: true,
    },
  );
  for (const { usd, tokens, period, models = null, providers = null } of added) {
    const limit = data.find(
      (one) =>
        one.scope === scope &&
        (!('group' in owner) || one.group === owner.group) &&
        one.period === period &&
        one.resource === (usd === undefined ? 'tokens' : 'usd') &&
        String(one.models) === String(models) &&
        String(one.providers) === String(providers),
    );
    const used = limit === undefined ? 0 : Number(limit.used);
    const what = `The budget ${usd ?? `${tokens!}tokens`}/${period}`;
    const amount = usd === undefined ? `${count(used)} tokens` : `$${money(limit?.used ?? '0')}`;
    out.note(
      used === 0
        ? `${what} counts from now.`
        : `${what} counts from the start of its ${period}: ${amount} used before.`,
    );
  }
}
