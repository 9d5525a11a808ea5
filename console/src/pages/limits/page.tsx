import { Anchor, Button, Group, SegmentedControl, Select, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { api } from '../../api/client';
import { teamsQuery } from '../../api/load-all';
import { useIsMember, useMayChange } from '../../app/session';
import { EmptyState } from '../../display/empty-state';
import { FullName } from '../../display/full-name';
import { PageLink } from '../../display/links';
import { PageHeader } from '../../display/page-header';
import { StatusBadge, type Tone } from '../../display/status-badge';
import { RelativeTime } from '../../figures/figure';
import { count } from '../../figures/numbers';
import { nanoOf } from '../../figures/money';
import { type FilterField, FilterForm } from '../../filters/filter-form';
import {
  blockedText,
  byOwner,
  byUrgency,
  depthInTree,
  isBudget,
  leftOutText,
  type Limit,
  limitAmount,
  limitOwner,
  limitTitle,
  usedPercent,
} from '../../limits/limit';
import { LimitBar } from '../../limits/limit-bar';
import { limitName } from '../../limits/limit-draft';
import { Rejected } from '../../refusals/rejected';
import { type Column, DataTable } from '../../table/data-table';
import { usePages } from '../../table/use-pages';
import { sharedState, useUrlState } from '../../url/url-state';
import { InstallationForm } from './installation-form';
import { ResetLimit } from './reset-limit';

const STATES: Readonly<Record<Limit['state'], string>> = {
  blocking: 'Blocking',
  exhausted: 'Exhausted',
  warned: 'Warned',
  ok: 'OK',
};
const TONES: Readonly<Record<Limit['state'], Tone>> = {
  blocking: 'bad',
  exhausted: 'bad',
  warned: 'warning',
  ok: 'good',
};
/** Whose limits, as the API filters them. Members see those of their teams and keys. */
const OWNERS = [
  { value: 'installation', label: 'All calls' },
  { value: 'group', label: 'Groups' },
  { value: 'team', label: 'Teams' },
  { value: 'key', label: 'Keys' },
];

/** In pixels: four levels fit beside the amounts, and in a card of 320 pixels. */
const INDENT = 14;
const FILTERS: readonly FilterField[] = [
  { name: 'provider', label: 'Provider', placeholder: 'Provider', flex: '1 1 120px', maw: 200 },
  { name: 'model', label: 'Model', placeholder: 'Model', flex: '1 1 160px', maw: 280 },
];

export default function Limits() {
  const [url, setUrl] = useUrlState();
  const [reset, setReset] = useState<Limit>();
  const [editing, setEditing] = useState<'all' | Limit>();
  const isMember = useIsMember();
  const mayChange = useMayChange();
  const teams = useQuery(teamsQuery).data?.rows;
  const { team, key, state, scope, id, provider, model, view } = url;
  const filter = { team, key, state, scope, id, provider, model };
  const list = usePages<Limit>(
    ['limits', filter],
    (cursor, signal) => api.get('/admin/v1/limits', { query: { ...filter, limit: 500, cursor }, signal }),
    { refetchInterval: 10_000 },
  );
  const groupOf = useMemo(
    () => new Map((teams ?? []).flatMap(({ name, group }) => (group === null ? [] : [[name, group]]))),
    [teams],
  );
  const isTree = view !== 'urgency';
  const rows = useMemo(() => {
    return list.rows && [...list.rows].sort(isTree ? byOwner(groupOf) : byUrgency);
  }, [list.rows, isTree, groupOf]);
  const columns = useMemo<readonly Column<Limit>[]>(
    () => [
      ownerColumn((limit) => (isTree ? depthInTree(limit, groupOf) : 0)),
      ...COLUMNS,
      ...(mayChange ? [actionColumn(setReset, setEditing)] : []),
    ],
    [mayChange, isTree, groupOf],
  );
  return (
    <>
      <PageHeader
        title="Limits"
        description="What may be used, and how much of it is used. Every limit that counts a call must admit it."
      >
        {mayChange && (
          <Button variant="default" onClick={() => setEditing('all')}>
            Limits of all calls
          </Button>
        )}
      </PageHeader>
      <Group gap="sm" mb="md">
        <SegmentedControl
          size="xs"
          aria-label="Order"
          value={view ?? ''}
          onChange={(value) => setUrl({ view: value })}
          data={[
            { value: '', label: 'By owner' },
            { value: 'urgency', label: 'By urgency' },
          ]}
        />
        <SegmentedControl
          size="xs"
          aria-label="State"
          value={state ?? ''}
          onChange={(value) => setUrl({ state: value })}
          data={[
            { value: '', label: 'All' },
            ...Object.entries(STATES).map(([value, label]) => ({ value, label })),
          ]}
        />
        <Select
          size="xs"
          w={150}
          aria-label="Owner"
          placeholder="All owners"
          clearable
          value={scope ?? null}
          onChange={(value) => setUrl({ scope: value ?? undefined })}
          data={isMember ? OWNERS.slice(2) : OWNERS}
          clearButtonProps={{ 'aria-label': 'All owners' }}
        />
        <Select
          size="xs"
          w={200}
          aria-label="Team"
          placeholder="All teams"
          clearable
          searchable
          value={url.team ?? null}
          onChange={(value) => setUrl({ team: value ?? undefined })}
          data={(teams ?? []).map(({ id, name }) => ({ value: id, label: name }))}
          clearButtonProps={{ 'aria-label': 'All teams' }}
        />
        {key !== undefined && (
          <Button size="xs" variant="default" onClick={() => setUrl({ key: undefined })}>
            Show all keys
          </Button>
        )}
        {id !== undefined && (
          <Button size="xs" variant="default" onClick={() => setUrl({ id: undefined })}>
            Show all limits
          </Button>
        )}
      </Group>
      <FilterForm fields={FILTERS} />
      <DataTable
        label="Limits"
        columns={columns}
        rows={rows}
        rowId={({ id }) => id}
        error={list.error}
        retry={() => void list.refetch()}
        stale={list.isPlaceholderData}
        hasMore={list.hasNextPage}
        loadMore={() => void list.fetchNextPage()}
        loadingMore={list.isFetchingNextPage}
        empty={
          Object.values(filter).some((value) => value !== undefined) ? (
            <EmptyState title="No limits match">
              Choose another state, owner, team, provider or model.
            </EmptyState>
          ) : (
            <EmptyState
              title="Nothing is limited"
              action={
                <PageLink to="/teams" search={sharedState(url)} underline="always">
                  Set a budget on a team
                </PageLink>
              }
            >
              Every key may use as much as its provider allows.
            </EmptyState>
          )
        }
      />
      <Rejected team={team} gatewayKey={key} />
      <ResetLimit limit={reset} onClose={() => setReset(undefined)} />
      {editing !== undefined && (
        <InstallationForm
          raised={editing === 'all' ? undefined : nameInForm(editing)}
          onClose={() => setEditing(undefined)}
        />
      )}
    </>
  );
}

/** @param depthOf how far a limit is indented */
function ownerColumn(depthOf: (limit: Limit) => number): Column<Limit> {
  return {
    id: 'owner',
    header: 'Owner',
    cell: (limit) => (
      <Stack gap={0} data-depth={depthOf(limit)} ps={depthOf(limit) * INDENT}>
        <OwnerLink limit={limit} />
        <LimitLink limit={limit} />
      </Stack>
    ),
  };
}

/** The address of the limit. */
function LimitLink({ limit }: { limit: Limit }) {
  const [url] = useUrlState();
  const title = limit.mode === 'warn' ? `${limitTitle(limit)}, only warns` : limitTitle(limit);
  return (
    <PageLink
      to="/limits"
      search={{ ...sharedState(url), id: limit.id }}
      size="xs"
      c="dimmed"
      aria-label={`${title} of ${limitOwner(limit)}`}
    >
      {title}
    </PageLink>
  );
}

const COLUMNS: readonly Column<Limit>[] = [
  {
    id: 'state',
    header: 'State',
    oneLine: true,
    cell: ({ state }) => <StatusBadge tone={TONES[state]}>{STATES[state]}</StatusBadge>,
  },
  { id: 'bar', header: 'Used', wholeLine: true, cell: (limit) => <UsedOf limit={limit} /> },
  { id: 'held', header: 'Held', align: 'right', cell: (limit) => limitAmount(limit, limit.held) },
  { id: 'left', header: 'Left', align: 'right', cell: (limit) => limitAmount(limit, limit.left) },
  { id: 'refused', header: 'Rejected calls', align: 'right', cell: ({ refused }) => count(refused) },
  {
    id: 'resets',
    header: 'Resets',
    align: 'right',
    cell: ({ resets_at, period }) => (
      <RelativeTime
        at={resets_at}
        empty={period === 'total' || period === 'session' ? 'never' : 'continuously'}
      />
    ),
  },
];

function UsedOf({ limit }: { limit: Limit }) {
  return (
    <div style={{ minWidth: 200 }}>
      <Group justify="space-between" gap="xs" mb={3} wrap="nowrap">
        <Text size="xs" style={{ whiteSpace: 'nowrap' }}>
          {limitAmount(limit, limit.used)} of {limitAmount(limit, limit.amount)}
          {nanoOf(limit.credited) > 0n && ` + ${limitAmount(limit, limit.credited)}`}
        </Text>
        <Text size="xs" c="dimmed">
          {usedPercent(limit)}
        </Text>
      </Group>
      <LimitBar limit={limit} />
      <LeftOut limit={limit} />
      <Text size="xs" c="var(--postern-bad)" mt={3}>
        {blockedText(limit)}
      </Text>
    </div>
  );
}

/** Beside a sum that leaves calls out, where they are counted. */
function LeftOut({ limit }: { limit: Limit }) {
  const [url] = useUrlState();
  const text = leftOutText(limit);
  if (text === undefined) return null;
  const { group, team, key, owner_id: id } = limit;
  const owner = key !== null ? { key: id } : team !== null ? { team: id } : group !== null ? { group } : {};
  return (
    <PageLink to="/usage" search={{ ...sharedState(url), ...owner, by: 'model' }} size="xs" c="dimmed">
      {text}
    </PageLink>
  );
}

/** A raise is a change of the owner; a reset gives the whole amount again. */
function actionColumn(
  reset: (limit: Limit) => void,
  editInstallation: (limit: Limit) => void,
): Column<Limit> {
  return {
    id: 'action',
    header: 'Action',
    align: 'right',
    actions: true,
    cell: (limit) => (
      <Group gap="xs" justify="flex-end" wrap="nowrap">
        {isBudget(limit) && (
          <Button
            size="compact-xs"
            variant="default"
            aria-label={`Reset ${limitTitle(limit).toLowerCase()} of ${limitOwner(limit)} for this period`}
            onClick={() => reset(limit)}
          >
            Reset
          </Button>
        )}
        <Raise limit={limit} editInstallation={editInstallation} />
      </Group>
    ),
  };
}

/** Whose limit it is, where it can be edited. */
function OwnerLink({ limit }: { limit: Limit }) {
  const [url] = useUrlState();
  const { group, team, key, owner_id: id } = limit;
  const shared = sharedState(url);
  if (team === null) {
    return group === null ? (
      <Text size="sm">{limitOwner(limit)}</Text>
    ) : (
      <PageLink to="/teams" search={{ ...shared, group }} size="sm" className="truncated">
        {limitOwner(limit)}
      </PageLink>
    );
  }
  return key === null ? (
    <PageLink to="/teams" search={{ ...shared, open: id }} size="sm" className="truncated">
      {team}
    </PageLink>
  ) : (
    <PageLink to="/keys" search={{ ...shared, key: id }} size="sm" className="truncated">
      <FullName team={team} name={key} />
    </PageLink>
  );
}

/** As the forms of its owner call it. */
function nameInForm(limit: Limit): string {
  const each = limit.scope.endsWith('_end_user')
    ? 'each_end_user '
    : limit.scope.endsWith('_session')
      ? 'each_session '
      : '';
  return each + limitName(limit.resource, limit.period, limit);
}

/** Leads to the form that has the amount: of the key, team or group; that of the installation opens here. */
function Raise({ limit, editInstallation }: { limit: Limit; editInstallation: (limit: Limit) => void }) {
  const [url] = useUrlState();
  const { group, team, key, owner_id: id } = limit;
  const shared = sharedState(url);
  const link = {
    size: 'sm',
    'aria-label': `Raise ${limitTitle(limit).toLowerCase()} of ${limitOwner(limit)}`,
  };
  if (key !== null) {
    return (
      <PageLink to="/keys" search={{ ...shared, key: id, edit: nameInForm(limit) }} {...link}>
        Raise
      </PageLink>
    );
  }
  if (team !== null) {
    return (
      <PageLink to="/teams" search={{ ...shared, open: id, edit: nameInForm(limit) }} {...link}>
        Raise
      </PageLink>
    );
  }
  if (group !== null) {
    return (
      <PageLink to="/teams" search={{ ...shared, group, edit: nameInForm(limit) }} {...link}>
        Raise
      </PageLink>
    );
  }
  return (
    <Anchor component="button" type="button" onClick={() => editInstallation(limit)} {...link}>
      Raise
    </Anchor>
  );
}
