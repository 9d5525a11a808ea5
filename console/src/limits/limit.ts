import type { ResponseOf } from '../api/client';
import { formatUsd, nanoOf } from '../figures/money';
import { count, percent } from '../figures/numbers';

export type Limit = ResponseOf<'/admin/v1/limits', 'get'>['data'][number];

const RESOURCES: Record<Limit['resource'], string> = {
  requests: 'Requests',
  tokens: 'Tokens',
  concurrent_requests: 'Concurrent requests',
  usd: 'Budget',
};
const PERIODS: Record<Limit['period'], string> = {
  minute: 'per minute',
  at_once: 'at once',
  day: 'per day',
  week: 'per week',
  month: 'per month',
  total: 'in total',
  session: '',
};

/** "Budget per month", "Tokens per minute", "Tokens per day for each end user", "Budget per month, only openai" */
export function limitTitle({
  resource,
  period,
  scope,
  providers,
  models,
}: Pick<Limit, 'resource' | 'period' | 'scope' | 'providers' | 'models'>): string {
  const period_ = resource === 'concurrent_requests' || period === 'session' ? '' : ` ${PERIODS[period]}`;
  const each = scope.endsWith('_end_user') ? 'end user' : scope.endsWith('_session') ? 'session' : null;
  const only = [...(providers ?? []), ...(models ?? [])].join(', ');
  return `${RESOURCES[resource]}${period_}${each === null ? '' : ` for each ${each}`}${only === '' ? '' : `, only ${only}`}`;
}

/** Whose limit it is: "search", "search / ci" for a key, "Group dev", or "All calls" of the installation. */
export function limitOwner({ group, team, key }: Limit): string {
  if (key !== null) return `${team} / ${key}`;
  return team ?? (group === null ? 'All calls' : `Group ${group}`);
}

/** An amount of a limit, as text: dollars, or a count. */
export function limitAmount({ resource }: Pick<Limit, 'resource'>, amount: string): string {
  return resource === 'usd' ? formatUsd(nanoOf(amount)) : count(Number(amount));
}

/** What is used and held, as parts of the amount with what resets added. 1 is all of it; more is possible. */
export function limitShares({ used, held, amount, credited }: Limit): { used: number; held: number } {
  const whole = nanoOf(amount) + nanoOf(credited);
  if (whole === 0n) return { used: 1, held: 0 };
  return { used: Number(nanoOf(used)) / Number(whole), held: Number(nanoOf(held)) / Number(whole) };
}

/** "91%": how much of it is used. */
export function usedPercent(limit: Limit): string {
  return percent(Math.round(limitShares(limit).used * 1_000), 1_000);
}

/** "Rejects calls: the last one needed $0.041, and $0.01 is left." Undefined if it would reject none now. */
export function blockedText(limit: Limit): string | undefined {
  if (limit.state === 'exhausted' && limit.mode !== 'warn')
    return 'Nothing is left: the next call is rejected.';
  if (limit.state !== 'blocking') return undefined;
  const left = limitAmount(limit, limit.left);
  if (limit.last_needed === null || limit.resource === 'requests' || limit.resource === 'concurrent_requests')
    return 'Rejects calls.';
  return `Rejects calls: the last one needed ${limitAmount(limit, limit.last_needed)}, and ${left} is left.`;
}

/** What the sum of a budget leaves out, if it forwards such calls. */
export function leftOutText({ unpriced }: Pick<Limit, 'unpriced'>): string | undefined {
  return unpriced === 'allow' ? 'Without calls that have no price' : undefined;
}

/** Budgets can be reset; rates pass by themselves. */
export function isBudget({ period }: Limit): boolean {
  return period !== 'minute' && period !== 'at_once';
}

const ORDER: Record<Limit['state'], number> = { blocking: 0, exhausted: 1, warned: 2, ok: 3 };

/** Those that reject calls first, then exhausted ones, then by how much is used. */
export function byUrgency(a: Limit, b: Limit): number {
  return ORDER[a.state] - ORDER[b.state] || limitShares(b).used - limitShares(a).used;
}

/** How deep a limit stands in the tree of the installation, its groups, their teams and keys. */
export function depthInTree(limit: Limit, groupOf: ReadonlyMap<string, string>): number {
  const { team, key, group } = limit;
  const ofOwner =
    team === null ? (group === null ? 0 : 1) : 1 + Number(groupOf.has(team)) + Number(key !== null);
  return ofOwner + Number(isOfEach(limit));
}

/**
 * The installation, then each group with its teams, then the teams without one; after a team its keys. Those of each end user
 * and session stand after those of their owner, and of these the most urgent first.
 *
 * @param groupOf the groups of teams by their names
 */
export function byOwner(groupOf: ReadonlyMap<string, string>): (a: Limit, b: Limit) => number {
  const pathOf = (limit: Limit): string[] => {
    const { team, key } = limit;
    const group = team === null ? limit.group : (groupOf.get(team) ?? null);
    const rank = group !== null ? '1' : team === null ? '0' : '2';
    return [rank, group ?? '', team ?? '', key ?? '', isOfEach(limit) ? '1' : '0'];
  };
  return (a, b) => {
    const [one, other] = [pathOf(a), pathOf(b)];
    const at = one.findIndex((part, i) => part !== other[i]);
    return at === -1 ? byUrgency(a, b) : one[at]!.localeCompare(other[at]!);
  };
}

function isOfEach({ scope }: Limit): boolean {
  return scope.endsWith('_end_user') || scope.endsWith('_session');
}
