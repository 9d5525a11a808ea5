import { Text } from '@mantine/core';
import type { ResponseOf } from '../../api/client';
import { StatusBadge } from '../../display/status-badge';
import { Compact, Money, RelativeTime, Unknown } from '../../figures/figure';
import { BudgetCell } from '../../limits/budget-cell';
import { byUrgency, isBudget, type Limit } from '../../limits/limit';
import type { Column } from '../../table/data-table';
import type { UsagePage } from '../../usage/metrics';
import { UnknownCost } from '../../usage/unknown-cost';
import { type Key, statusOf, STATUS_TONES } from './key';

interface Sources {
  teams: readonly ResponseOf<'/admin/v1/teams/{id}', 'get'>[] | undefined;
  limits: readonly Limit[] | undefined;
  usage: UsagePage | undefined;
  rangeLabel: string;
  now: Date;
}

export function keyColumns({ teams, limits, usage, rangeLabel, now }: Sources): Column<Key>[] {
  const disabledTeams = new Set((teams ?? []).filter(({ disabled }) => disabled).map(({ id }) => id));
  const used = new Map((usage?.data ?? []).map((row) => [row.key_id, row]));
  /** The sums of a key: undefined if they are unknown, null if it made no call. */
  const sumsOf = (id: string) => used.get(id) ?? (usage?.next_cursor === null ? null : undefined);
  const budgets = new Map<string, Limit>();
  for (const limit of [...(limits ?? [])].sort(byUrgency)) {
    if (isBudget(limit) && !budgets.has(limit.owner_id)) budgets.set(limit.owner_id, limit);
  }
  return [
    {
      id: 'name',
      header: 'Key',
      cell: ({ name, prefix }) => (
        <>
          <Text span fw={600} size="sm">
            {name}
          </Text>
          <Text c="dimmed" size="xs" ff="monospace" component="span" display="block">
            {prefix === null ? 'no secret' : `${prefix}…`}
          </Text>
        </>
      ),
    },
    {
      id: 'team',
      header: 'Team',
      sorts: true,
      cell: ({ team, owner, contact }) => (
        <>
          <span className="truncated" title={team}>
            {team}
          </span>
          {(owner ?? contact) !== null && (
            <Text
              c="dimmed"
              size="xs"
              component="span"
              className="truncated"
              title={owner === null ? `Contact: ${contact}` : `Owner: ${owner}`}
            >
              {owner ?? contact}
            </Text>
          )}
        </>
      ),
    },
    {
      id: 'status',
      header: 'Status',
      cell: (key) => {
        const status = statusOf(key, disabledTeams.has(key.team_id), now);
        return <StatusBadge tone={STATUS_TONES[status]}>{status}</StatusBadge>;
      },
    },
    {
      id: 'expires',
      header: 'Expires',
      sorts: true,
      oneLine: true,
      cell: ({ expires_at }) => <RelativeTime at={expires_at} empty="never" />,
    },
    {
      id: 'used',
      header: 'Last used',
      sorts: true,
      oneLine: true,
      cell: ({ last_used_at }) => <RelativeTime at={last_used_at} empty="never" />,
    },
    {
      id: 'calls',
      header: 'Calls',
      sorts: true,
      align: 'right',
      cell: ({ id }) => {
        const sums = sumsOf(id);
        return sums === undefined ? <Unknown why={NOT_COUNTED} /> : <Compact value={sums?.calls ?? 0} />;
      },
    },
    {
      id: 'cost',
      header: `Cost, ${rangeLabel.toLowerCase()}`,
      sorts: true,
      align: 'right',
      cell: ({ id }) => {
        const sums = sumsOf(id);
        if (sums === undefined) return <Unknown why={NOT_COUNTED} />;
        return (
          <>
            <Money usd={sums === null ? '0' : sums.cost_usd} />
            <UnknownCost sums={sums} />
          </>
        );
      },
    },
    {
      id: 'budget',
      header: 'Budget',
      wholeLine: true,
      cell: ({ id }) => <BudgetCell limit={budgets.get(id)} />,
    },
  ];
}

const NOT_COUNTED = 'It is not among the 500 keys that cost most. Open the key to see its usage.';
