import { Button, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { useMayChange } from '../../app/session';
import { EmptyState } from '../../display/empty-state';
import { PageLink } from '../../display/links';
import { Section } from '../../display/section';
import { Compact, Money } from '../../figures/figure';
import { nanoOf } from '../../figures/money';
import { type Column, DataTable } from '../../table/data-table';
import type { TimeRange } from '../../url/time-range';
import { sharedState, type UrlState, useUrlState } from '../../url/url-state';
import type { UsagePage } from '../../usage/metrics';
import { UnknownCost } from '../../usage/unknown-cost';
import { useUsage } from '../../usage/use-usage';
import { limitsQuery } from '../../api/load-all';
import { BudgetCell } from '../../limits/budget-cell';
import { byUrgency, isBudget, type Limit } from '../../limits/limit';
import { groupsQuery, type TeamGroup } from './group';
import { GroupForm } from './group-form';

/** The groups with their teams and what these cost. */
export function Groups({ range }: { range: TimeRange }) {
  const [url, setUrl] = useUrlState();
  const mayChange = useMayChange();
  const [opened, setForm] = useState<'new' | TeamGroup>();
  const groups = useQuery(groupsQuery);
  const raised =
    mayChange && url.edit !== undefined && url.open === undefined
      ? groups.data?.rows.find(({ name }) => name === url.group)
      : undefined;
  const form = opened ?? raised;
  const usage = useUsage({ ...range.query, group_by: 'group', sort: 'cost', limit: 500 }).data;
  const limits = useQuery(limitsQuery).data?.rows;
  const columns = useMemo(
    () => columnsOf(usage, limits, range.label, url),
    [usage, limits, range.label, url],
  );
  const rows = groups.data?.rows;
  const create = mayChange && (
    <Button variant="default" onClick={() => setForm('new')}>
      Create group
    </Button>
  );
  return (
    <Section title="Groups" mt="lg" actions={rows?.length === 0 ? undefined : create}>
      <DataTable
        label="Groups"
        columns={columns}
        rows={rows}
        rowId={({ id }) => id}
        error={groups.error}
        retry={() => void groups.refetch()}
        {...(mayChange && { onOpen: setForm })}
        empty={
          <EmptyState title="There is no group" action={create}>
            A group holds teams, which share its limits and whose usage is added up.
          </EmptyState>
        }
      />
      {form !== undefined && (
        <GroupForm
          {...(form !== 'new' && { shown: form })}
          raised={form === raised ? url.edit : undefined}
          onClose={() => {
            setForm(undefined);
            setUrl({ edit: undefined }, { replace: true });
          }}
        />
      )}
    </Section>
  );
}

function columnsOf(
  usage: UsagePage | undefined,
  limits: readonly Limit[] | undefined,
  rangeLabel: string,
  url: UrlState,
): Column<TeamGroup>[] {
  const budgetOf = (id: string) =>
    [...(limits ?? [])]
      .sort(byUrgency)
      .find((limit) => limit.owner_id === id && limit.scope === 'group' && isBudget(limit));
  const sums = new Map((usage?.data ?? []).map((row) => [row.group, row]));
  return [
    {
      id: 'name',
      header: 'Group',
      cell: ({ name, note }) => (
        <>
          <Text span fw={600} size="sm">
            {name}
          </Text>
          {note !== null && (
            <Text c="dimmed" size="xs" component="span" className="truncated" title={note}>
              {note}
            </Text>
          )}
        </>
      ),
    },
    {
      id: 'teams',
      header: 'Teams',
      cell: ({ name, teams }) =>
        teams.length === 0 ? (
          'none'
        ) : (
          <PageLink to="/teams" search={{ ...sharedState(url), group: name }} size="sm">
            {summary(teams)}
          </PageLink>
        ),
    },
    {
      id: 'calls',
      header: 'Calls',
      align: 'right',
      cell: ({ name }) => <Compact value={sums.get(name)?.calls ?? 0} />,
    },
    {
      id: 'cost',
      header: `Cost, ${rangeLabel.toLowerCase()}`,
      align: 'right',
      sortBy: ({ name }) => nanoOf(sums.get(name)?.cost_usd),
      cell: ({ name }) => {
        const row = sums.get(name);
        return (
          <PageLink to="/usage" search={{ ...sharedState(url), group: name, by: 'team' }} size="sm">
            <Money usd={row === undefined ? '0' : row.cost_usd} />
            {row !== undefined && <UnknownCost sums={row} />}
          </PageLink>
        );
      },
    },
    {
      id: 'budget',
      header: 'Budget',
      wholeLine: true,
      cell: ({ id }) => <BudgetCell limit={budgetOf(id)} />,
    },
  ];
}

const SHOWN = 3;

function summary(names: readonly string[]): string {
  const shown = names.slice(0, SHOWN).join(', ');
  return names.length > SHOWN ? `${shown} and ${names.length - SHOWN} more` : shown;
}
