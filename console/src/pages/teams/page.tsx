import { Button, Text } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { api, type ResponseOf } from '../../api/client';
import { limitsQuery, loadAll, teamsQuery, type Whole } from '../../api/load-all';
import { useIsMember, useMayChange } from '../../app/session';
import { EmptyState } from '../../display/empty-state';
import { PageLink } from '../../display/links';
import { PageHeader } from '../../display/page-header';
import { StatusBadge } from '../../display/status-badge';
import { Compact, Money, Unknown } from '../../figures/figure';
import { nanoOf } from '../../figures/money';
import { count } from '../../figures/numbers';
import { BudgetCell } from '../../limits/budget-cell';
import { byUrgency, isBudget, type Limit } from '../../limits/limit';
import { type FilterField, FilterForm } from '../../filters/filter-form';
import { NoMatch } from '../../filters/no-match';
import { type Column, DataTable, type Sort } from '../../table/data-table';
import { useSort } from '../../table/use-sort';
import { useTimeRange } from '../../url/time-range';
import { TimeRangePicker } from '../../url/time-range-picker';
import { sharedState, type UrlState, useUrlState } from '../../url/url-state';
import type { UsagePage } from '../../usage/metrics';
import { UnknownCost } from '../../usage/unknown-cost';
import { useUsage } from '../../usage/use-usage';
import { groupsQuery, type TeamGroup } from './group';
import { Groups } from './groups';
import { TeamDrawer } from './team-drawer';
import type { Team } from './team';
import { TeamForm } from './team-form';

const FILTERS: readonly FilterField[] = [
  { name: 'q', label: 'Name', placeholder: 'Name', flex: '1 1 200px', maw: 320, live: true },
  {
    name: 'owner',
    label: 'Owner',
    placeholder: 'Owner',
    flex: '1 1 120px',
    maw: 200,
  },
  {
    name: 'cost_center',
    label: 'Cost center',
    placeholder: 'Cost center',
    flex: '1 1 120px',
    maw: 200,
  },
];
const groupField = (groups: readonly TeamGroup[]): FilterField => ({
  name: 'group',
  label: 'Group',
  any: 'Any group',
  choices: groups.map(({ name }) => name),
  searchable: true,
  flex: '1 1 120px',
  maw: 200,
});
const BY_COST: Sort = { id: 'cost', desc: true };

export default function Teams() {
  const [url, setUrl] = useUrlState();
  const range = useTimeRange('30d');
  const mayChange = useMayChange();
  const isMember = useIsMember();
  const groups = useQuery({ ...groupsQuery, enabled: !isMember }).data?.rows ?? [];
  const filter = { search: url.q, group: url.group, owner: url.owner, cost_center: url.cost_center };
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  const all = useQuery({ ...teamsQuery, enabled: !isFiltered });
  const matching = useQuery({
    queryKey: ['teams', 'search', filter],
    queryFn: ({ signal }) =>
      loadAll((query) => api.get('/admin/v1/teams', { query: { ...query, ...filter }, signal })),
    placeholderData: keepPreviousData,
    enabled: isFiltered,
  });
  const fields = groups.length === 0 && url.group === undefined ? FILTERS : [...FILTERS, groupField(groups)];
  const teams = isFiltered ? matching : all;
  const opened = useQuery({
    queryKey: ['team', url.open],
    queryFn: ({ signal }) => api.get('/admin/v1/teams/{id}', { path: { id: url.open ?? '' }, signal }),
    enabled: url.open !== undefined && teams.data?.rows.every(({ id }) => id !== url.open) === true,
  });
  const { sort, onSort } = useSort(BY_COST);
  const limits = useQuery(limitsQuery).data?.rows;
  const keys = useQuery({
    queryKey: ['keys', 'counts'],
    queryFn: ({ signal }) => loadAll((query) => api.get('/admin/v1/keys/counts', { query, signal })),
  }).data;
  const usage = useUsage({ ...range.query, group_by: 'team', sort: 'cost', limit: 500 }).data;
  const columns = useMemo(
    () => columnsOf({ teams: teams.data?.rows, limits, keys, usage, rangeLabel: range.label, url }),
    [teams.data, limits, keys, usage, range.label, url],
  );
  const create = mayChange && <Button onClick={() => setUrl({ new: '1' })}>Create team</Button>;
  return (
    <>
      <PageHeader title="Teams" description="Teams own keys, and share limits and budgets.">
        <TimeRangePicker range={range} />
        {(teams.data?.rows.length !== 0 || isFiltered) && create}
      </PageHeader>
      <FilterForm fields={fields} />
      <DataTable
        label="Teams"
        columns={columns}
        rows={teams.data?.rows}
        rowId={({ id }) => id}
        error={teams.error}
        retry={() => void teams.refetch()}
        onOpen={({ id }) => setUrl({ open: id })}
        openId={url.open}
        sort={sort}
        onSort={onSort}
        stale={teams.isPlaceholderData}
        empty={
          isFiltered ? (
            <NoMatch title="No team matches" all="teams" filters={fields.map(({ name }) => name)}>
              Names are searched, in any case. Owners and cost centers are compared whole.
            </NoMatch>
          ) : (
            <EmptyState title="There is no team yet" action={create}>
              Every key belongs to a team.
            </EmptyState>
          )
        }
      />
      {!isMember && <Groups range={range} />}
      <TeamDrawer
        shown={
          url.open === undefined
            ? undefined
            : (teams.data?.rows.find(({ id }) => id === url.open) ?? opened.data)
        }
        onClose={() => setUrl({ open: undefined })}
      />
      {mayChange && url.new === '1' && (
        <TeamForm
          onClose={() => setUrl({ new: undefined })}
          onSaved={({ id }) => setUrl({ new: undefined, open: id })}
        />
      )}
    </>
  );
}

interface Sources {
  teams: readonly Team[] | undefined;
  limits: readonly Limit[] | undefined;
  keys: Whole<ResponseOf<'/admin/v1/keys/counts', 'get'>['data'][number]> | undefined;
  usage: UsagePage | undefined;
  rangeLabel: string;
  url: UrlState;
}

const OWNER: Column<Team> = {
  id: 'owner',
  header: 'Owner',
  sortBy: ({ owner }) => owner?.toLowerCase() ?? '',
  cell: ({ owner }) => owner ?? '–',
};
const GROUP: Column<Team> = {
  id: 'group',
  header: 'Group',
  sortBy: ({ group }) => group?.toLowerCase() ?? '',
  cell: ({ group }) => group ?? '–',
};

const COST_CENTER: Column<Team> = {
  id: 'cost_center',
  header: 'Cost center',
  sortBy: ({ cost_center }) => cost_center?.toLowerCase() ?? '',
  cell: ({ cost_center }) => cost_center ?? '–',
};

function columnsOf({ teams, limits, keys, usage, rangeLabel, url }: Sources): Column<Team>[] {
  const sums = new Map((usage?.data ?? []).map((row) => [row.team_id, row]));
  const isWhole = usage?.next_cursor === null;
  const keyCounts = new Map((keys?.rows ?? []).map(({ team_id, active }) => [team_id, active]));
  const budgets = new Map<string, Limit>();
  for (const limit of [...(limits ?? [])].sort(byUrgency)) {
    if (limit.scope === 'team' && isBudget(limit) && !budgets.has(limit.owner_id))
      budgets.set(limit.owner_id, limit);
  }
  const hasOwners = (teams ?? []).some(({ owner }) => owner !== null);
  const hasCenters = (teams ?? []).some(({ cost_center }) => cost_center !== null);
  const unknown = (
    <Unknown why="It is not among the 500 teams that cost most. Open the team to see its usage." />
  );
  return [
    {
      id: 'name',
      header: 'Team',
      sortBy: ({ name }) => name.toLowerCase(),
      cell: ({ name, contact }) => (
        <>
          <Text span fw={600} size="sm">
            {name}
          </Text>
          {contact !== null && (
            <Text c="dimmed" size="xs" component="span" className="truncated" title={`Contact: ${contact}`}>
              {contact}
            </Text>
          )}
        </>
      ),
    },
    ...(hasOwners ? [OWNER] : []),
    ...((teams ?? []).some(({ group }) => group !== null) ? [GROUP] : []),
    ...(hasCenters ? [COST_CENTER] : []),
    {
      id: 'status',
      header: 'Status',
      cell: ({ disabled }) => (
        <StatusBadge tone={disabled ? 'warning' : 'good'}>{disabled ? 'disabled' : 'active'}</StatusBadge>
      ),
    },
    {
      id: 'keys',
      header: 'Active keys',
      align: 'right',
      sortBy: ({ id }) => keyCounts.get(id) ?? 0,
      cell: ({ id, name }) =>
        keys === undefined || (!keys.complete && !keyCounts.has(id)) ? (
          <Unknown why="There are too many teams to count their keys here." />
        ) : (
          <PageLink to="/keys" search={{ ...sharedState(url), team: name, status: 'active' }} size="sm">
            {count(keyCounts.get(id) ?? 0)}
          </PageLink>
        ),
    },
    {
      id: 'models',
      header: 'Models',
      cell: ({ models }) => (models === null ? 'all' : models.length === 0 ? 'none' : summary(models)),
    },
    {
      id: 'calls',
      header: 'Calls',
      align: 'right',
      sortBy: ({ id }) => sums.get(id)?.calls ?? 0,
      cell: ({ id }) => (!sums.has(id) && !isWhole ? unknown : <Compact value={sums.get(id)?.calls ?? 0} />),
    },
    {
      id: 'cost',
      header: `Cost, ${rangeLabel.toLowerCase()}`,
      align: 'right',
      sortBy: ({ id }) => nanoOf(sums.get(id)?.cost_usd),
      cell: ({ id }) => {
        const row = sums.get(id);
        if (row !== undefined)
          return (
            <>
              <Money usd={row.cost_usd} />
              <UnknownCost sums={row} />
            </>
          );
        return isWhole ? <Money usd="0" /> : unknown;
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

function summary(models: readonly string[]): string {
  const [first, ...others] = models;
  return others.length === 0 ? first! : `${first} and ${others.length} more`;
}
