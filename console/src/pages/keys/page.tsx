import { Button, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useSearch } from '@tanstack/react-router';
import { useMemo } from 'react';
import { QUERY_VALUES } from '../../api/query-values';
import { limitsQuery, teamsQuery } from '../../api/load-all';
import { useIsMember, useLeads, useMayChange } from '../../app/session';
import { EmptyState } from '../../display/empty-state';
import { PageHeader } from '../../display/page-header';
import { useNow } from '../../figures/figure';
import { FilterForm } from '../../filters/filter-form';
import { NoMatch } from '../../filters/no-match';
import { DataTable, type Sort } from '../../table/data-table';
import { usePages } from '../../table/use-pages';
import { useSort } from '../../table/use-sort';
import { withoutKey } from '../../search/search-text';
import { useTimeRange } from '../../url/time-range';
import { TimeRangePicker } from '../../url/time-range-picker';
import { useUrlState } from '../../url/url-state';
import { useUsage } from '../../usage/use-usage';
import { CreateKey } from './create-key';
import { DueFilter } from './due-filter';
import { FindKey } from './find-key';
import type { Key } from './key';
import { isByUsage, loadKeys } from './load-keys';
import { keyColumns } from './key-columns';
import { KeyDrawer } from './key-drawer';

export default function Keys() {
  const [url, setUrl] = useUrlState();
  const { status } = useSearch({ from: '/signed-in/keys' });
  const range = useTimeRange('30d');
  const mayChange = useMayChange();
  const { sort, onSort } = useSort();
  const filter = {
    search: url.q,
    team: url.team,
    status,
    owner: url.owner,
    cost_center: url.cost_center,
    expires_before: url.expires_before,
    unused_since: url.unused_since,
  };
  // Keys by usage come in one order: the largest first.
  const order = isByUsage(sort) ? { ...sort, desc: true } : (sort ?? firstOrder(filter));
  const keys = usePages<Key>(['keys', filter, order, isByUsage(order) && range.query], (cursor, signal) =>
    loadKeys(filter, order, range.query, cursor, signal),
  );
  const columns = useKeyColumns(range.query, range.label);
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  const mayCreate = useMayCreate();
  const create = mayCreate && <Button onClick={() => setUrl({ new: '1' })}>Create key</Button>;
  const close = () => setUrl({ new: undefined, find: undefined });
  return (
    <>
      <PageHeader title="Keys" description="Programs send a key with every call.">
        <TimeRangePicker range={range} />
        {mayChange && (
          <Button variant="default" onClick={() => setUrl({ find: '1' })}>
            Whose key is this?
          </Button>
        )}
        {(keys.rows?.length !== 0 || isFiltered) && create}
      </PageHeader>
      <Filters />
      {isByUsage(order) && (
        <Text size="sm" c="dimmed" mb="sm">
          Keys with calls {range.phrase}, the largest first.
        </Text>
      )}
      <DataTable
        label="Gateway keys"
        columns={columns}
        rows={keys.rows}
        sort={order}
        onSort={(chosen) => onSort(isByUsage(chosen) && !chosen.desc ? undefined : chosen)}
        rowId={({ id }) => id}
        error={keys.error}
        retry={() => void keys.refetch()}
        onOpen={({ id }) => setUrl({ key: id })}
        openId={url.key}
        hasMore={keys.hasNextPage}
        loadMore={() => void keys.fetchNextPage()}
        loadingMore={keys.isFetchingNextPage}
        stale={keys.isPlaceholderData}
        empty={
          isFiltered ? (
            <NoMatch
              title="No key matches"
              all="keys"
              filters={['q', 'team', 'status', 'owner', 'cost_center', 'expires_before', 'unused_since']}
            >
              Names of keys, teams and owners are searched; the fields Owner and Cost center are compared
              whole. A search that begins with ptn_ looks for the start of a secret.
            </NoMatch>
          ) : (
            <EmptyState title="There is no key yet" action={create}>
              A program needs one to call the gateway.
            </EmptyState>
          )
        }
      />
      <KeyDrawer id={url.key} onClose={() => setUrl({ key: undefined })} />
      {mayCreate && url.new === '1' && <CreateKey team={teamName(url.team)} onClose={close} />}
      {mayChange && url.find === '1' && (
        <FindKey onClose={close} onOpen={(id) => setUrl({ find: undefined, key: id })} />
      )}
    </>
  );
}

/** Those to look at first, if the list has only keys that expire soon, or that nobody uses. */
function firstOrder(filter: { expires_before?: string; unused_since?: string }): Sort | undefined {
  if (filter.expires_before !== undefined) return { id: 'expires', desc: false };
  return filter.unused_since === undefined ? undefined : { id: 'used', desc: false };
}

/** Members create keys of their own where their team lets them. */
function useMayCreate(): boolean {
  const isMember = useIsMember();
  const teams = useQuery(teamsQuery).data?.rows;
  const mayChange = useMayChange();
  const leads = useLeads();
  return mayChange || leads || (isMember && (teams ?? []).some(({ self_service }) => self_service !== null));
}

function teamName(team: string | undefined): string | undefined {
  // The filter may also be an ID, which the list of names does not have.
  return team !== undefined && /^[0-9a-f]{8}-/.test(team) ? undefined : team;
}

function useKeyColumns(query: { from: string; to: string }, rangeLabel: string) {
  const teams = useQuery(teamsQuery).data?.rows;
  const limits = useQuery(limitsQuery).data?.rows;
  const usage = useUsage({ ...query, group_by: 'key', sort: 'cost', limit: 500 }).data;
  const now = useNow();
  return useMemo(
    () => keyColumns({ teams, limits, usage, rangeLabel, now }),
    [teams, limits, usage, rangeLabel, now],
  );
}

function Filters() {
  const [{ team }] = useUrlState();
  const teams = useQuery(teamsQuery).data?.rows;
  return (
    <FilterForm
      fields={[
        {
          name: 'q',
          label: 'Name or start of the secret',
          placeholder: 'Name, team, owner or ptn_…',
          flex: '1 1 200px',
          maw: 320,
          // Of a whole secret nothing but its shown characters gets into the URL, or stays in the field.
          read: (text) => withoutKey(text).text.trim() || undefined,
          live: true,
        },
        {
          name: 'team',
          label: 'Team',
          any: 'All teams',
          searchable: true,
          choices: (teams ?? []).map(({ id, name }) => ({ value: id, label: name })),
          value: teams?.find(({ id, name }) => id === team || name === team)?.id ?? null,
          flex: '1 1 120px',
          maw: 220,
        },
        {
          name: 'status',
          label: 'Status',
          any: 'Any status',
          choices: QUERY_VALUES.listKeys.status.map((status) => ({
            value: status,
            label: status[0]!.toUpperCase() + status.slice(1),
          })),
          flex: '1 1 110px',
          maw: 160,
        },
        {
          name: 'owner',
          label: 'Owner',
          placeholder: 'Owner',
          flex: '1 1 100px',
          maw: 160,
        },
        {
          name: 'cost_center',
          label: 'Cost center',
          placeholder: 'Cost center',
          flex: '1 1 100px',
          maw: 160,
        },
      ]}
    >
      <DueFilter />
    </FilterForm>
  );
}
