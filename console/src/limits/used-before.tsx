import { Text } from '@mantine/core';
import { useState } from 'react';
import { ErrorAlert } from '../display/error-alert';
import { ExactTime } from '../figures/figure';
import { formatUsd, nanoOf } from '../figures/money';
import { count } from '../figures/numbers';
import { startOf } from '../url/calendar';
import { useReportZone } from '../url/time-zone';
import { useUsage } from '../usage/use-usage';
import type { Budget } from './limit-draft';

/** Whose budget it is, as usage is filtered. */
export type BudgetOwner = { team: string } | { key: string } | { group: string } | Record<never, never>;

/** What tells the budgets of one owner apart. One that has it already keeps what was used. */
export function isSameBudget(a: Budget, b: Budget): boolean {
  return (
    a.period === b.period && (a.usd === undefined) === (b.usd === undefined) && filterOf(a) === filterOf(b)
  );
}

function filterOf({ providers, models }: Budget): string {
  return JSON.stringify([providers ?? null, models ?? null]);
}

/** Says of a budget that is not stored yet from when it counts, and what was used in its day, week or month. */
export function UsedBefore({ owner, budget }: { owner: BudgetOwner; budget: Budget }) {
  const zone = useReportZone();
  const [now] = useState(() => new Date());
  const { period } = budget;
  const hasStart = period !== 'total' && period !== 'session';
  const from = hasStart ? startOf(period, now, zone) : now;
  const usage = useUsage(
    { ...owner, group_by: 'provider', from: from.toISOString(), to: now.toISOString(), limit: 1 },
    hasStart,
  );
  if (usage.error !== null) return <ErrorAlert error={usage.error} retry={() => void usage.refetch()} />;
  const totals = usage.data?.totals;
  // What was used of some providers and models is not added up here.
  const used = budget.providers == null && budget.models == null ? usedOf(budget, totals) : undefined;
  return (
    <Text size="xs" c="dimmed" mt="xs" role="status">
      {hasStart ? `Counts from the start of its ${period}.` : 'Counts from when it is saved.'}
      {hasStart && used !== undefined && (
        <>
          {' '}
          {used} since <ExactTime at={from.toISOString()} />
          {totals?.calls === 0 ? '.' : ', which counts.'}
        </>
      )}
    </Text>
  );
}

type Totals = NonNullable<ReturnType<typeof useUsage>['data']>['totals'];

/** "$20.17 was spent", or undefined while it is not known. */
function usedOf({ usd }: Budget, totals: Totals | undefined): string | undefined {
  if (totals === undefined || totals === null) return undefined;
  if (totals.calls === 0) return 'Nothing was used';
  return usd === undefined
    ? `${count(totals.total_tokens)} tokens were used`
    : `${formatUsd(nanoOf(totals.cost_usd))} was spent`;
}
