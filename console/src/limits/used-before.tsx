import { Select, Text } from '@mantine/core';
import { useState } from 'react';
import { ErrorAlert } from '../display/error-alert';
import { ExactTime } from '../figures/figure';
import { formatUsd, nanoOf } from '../figures/money';
import { count } from '../figures/numbers';
import type { CallFilter } from '../filters/fields';
import { startOf } from '../url/calendar';
import { useReportZone } from '../url/time-zone';
import { useUsage } from '../usage/use-usage';
import type { Budget } from './limit-draft';

/** Whose budget it is, as usage is filtered; empty: all calls. */
export type BudgetOwner = Pick<CallFilter, 'group' | 'team' | 'key'>;

interface Props {
  owner: BudgetOwner;
  budget: Budget;
  onChange: (budget: Budget) => void;
}

/** From when a budget that is not stored yet counts, and what was used in its day, week or month. */
export function UsedBefore({ owner, budget, onChange }: Props) {
  const { period, count_from, ...rest } = budget;
  const hasStart = period !== 'total' && period !== 'session';
  return (
    <>
      {hasStart && (
        <Select
          label="Count from"
          mt="xs"
          maw={280}
          allowDeselect={false}
          data={[
            { value: 'period', label: `The start of its ${period}` },
            { value: 'now', label: 'Now' },
          ]}
          value={count_from ?? 'period'}
          onChange={(value) =>
            onChange(value === 'now' ? { ...budget, count_from: value } : { ...rest, period })
          }
        />
      )}
      {hasStart && count_from !== 'now' ? (
        <UsedSince owner={owner} budget={budget} period={period} />
      ) : (
        <Note>Counts from when it is saved.</Note>
      )}
    </>
  );
}

function UsedSince({
  owner,
  budget,
  period,
}: Omit<Props, 'onChange'> & { period: 'day' | 'week' | 'month' }) {
  const zone = useReportZone();
  const [now] = useState(() => new Date());
  const from = startOf(period, now, zone);
  const [provider, ...others] = budget.providers ?? [];
  // Usage is of one provider, and of models by name: other sums would be of other calls.
  const isKnown = others.length === 0 && budget.models == null;
  const usage = useUsage(
    {
      ...owner,
      ...(provider !== undefined && { provider }),
      group_by: 'provider',
      from: from.toISOString(),
      to: now.toISOString(),
      limit: 1,
    },
    isKnown,
  );
  if (!isKnown) return <Note>Counts from the start of its {period}, with what was used since.</Note>;
  if (usage.error !== null) return <ErrorAlert error={usage.error} retry={() => void usage.refetch()} />;
  const totals = usage.data?.totals;
  const used = usedOf(budget, totals);
  return (
    <Note>
      Counts from the start of its {period}.
      {used !== undefined && (
        <>
          {' '}
          {used} since <ExactTime at={from.toISOString()} />
          {totals?.calls === 0 ? '.' : ', which counts.'}
        </>
      )}
    </Note>
  );
}

function Note({ children }: { children: React.ReactNode }) {
  return (
    <Text size="xs" c="dimmed" mt="xs" role="status">
      {children}
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
