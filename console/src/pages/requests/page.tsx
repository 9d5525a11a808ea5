import { Button, Group, Stack, Switch } from '@mantine/core';
import { useMemo } from 'react';
import { addressOf } from '../../api/address';
import { api } from '../../api/client';
import { EmptyState } from '../../display/empty-state';
import { DownloadIcon } from '../../display/icons';
import { PageButton } from '../../display/links';
import { PageHeader } from '../../display/page-header';
import { FilterBar } from '../../filters/filter-bar';
import type { FieldName } from '../../filters/fields';
import { FIELDS } from '../../filters/fields';
import { useCallFilter } from '../../filters/use-call-filter';
import { ColumnChooser } from '../../table/column-chooser';
import { Rejected } from '../../refusals/rejected';
import { DataTable } from '../../table/data-table';
import { usePages } from '../../table/use-pages';
import { TimeRangePicker } from '../../url/time-range-picker';
import { useTimeRange } from '../../url/time-range';
import { useUrlState, withRange } from '../../url/url-state';
import type { Call } from './call';
import { COLUMNS } from './columns';
import { Histogram } from './histogram';
import { RequestDrawer } from './request-drawer';

const FILTERS = Object.keys(FIELDS) as FieldName[];
/** What only calls that were forwarded have. */
const NOT_OF_REJECTED = FILTERS.filter((name) => !['team', 'key', 'failed'].includes(name));
const LIVE_MS = 2_000;
const PAGE = 50;

export default function Requests() {
  const [url, setUrl] = useUrlState();
  const range = useTimeRange('24h');
  const filter = useCallFilter(FILTERS);
  // As the URL has them.
  const chosen = Object.fromEntries(FILTERS.map((name) => [name, url[name]]));
  const live = url.live === '1';
  const shown = useMemo(
    () => url.columns?.split(',').filter((id) => COLUMNS.some((column) => column.id === id)),
    [url.columns],
  );
  const list = usePages<Call>(
    ['requests', filter, range.query],
    (cursor, signal) =>
      api.get('/admin/v1/requests', { query: { ...filter, ...range.query, limit: PAGE, cursor }, signal }),
    // Live, the pages that are shown are read again; cursors keep their places, so older pages stay as they are.
    { refetchInterval: live ? LIVE_MS : false },
  );
  return (
    <>
      <PageHeader title="Requests" description="Every forwarded call, newest first.">
        <Switch
          label="Live"
          checked={live}
          onChange={(event) =>
            setUrl({ live: event.currentTarget.checked ? '1' : undefined }, { replace: true })
          }
        />
        <TimeRangePicker range={range} />
      </PageHeader>
      <Group justify="space-between" align="flex-start" gap="xs" mb={{ base: 'md', sm: 0 }}>
        <FilterBar fields={FILTERS} range={range} />
        <Group gap="xs">
          <PageButton
            to="/usage"
            search={{
              ...withRange(url, '24h'),
              ...chosen,
              ...(filter.failed === 'true' && { metric: 'errors' }),
              by: 'key',
            }}
            size="compact-sm"
            variant="default"
          >
            Usage by key
          </PageButton>
          <Button
            component="a"
            href={addressOf('/admin/v1/requests/export', { format: 'csv', ...filter, ...range.query })}
            download
            size="compact-sm"
            variant="default"
            leftSection={<DownloadIcon size={14} />}
            title="All calls of this filter and time range, with every column"
          >
            CSV
          </Button>
          <ColumnChooser
            columns={COLUMNS}
            shown={shown}
            onChange={(ids) => setUrl({ columns: ids?.join(',') }, { replace: true })}
          />
        </Group>
      </Group>
      <Stack gap="md">
        <Histogram range={range} filter={filter} live={live} />
        {NOT_OF_REJECTED.every((name) => filter[name] === undefined) && (
          <Rejected {...range.query} team={filter.team} gatewayKey={filter.key} />
        )}
        <DataTable
          label="Requests"
          dense
          columns={COLUMNS}
          rows={list.rows}
          rowId={({ id }) => id}
          shown={shown}
          error={list.error}
          retry={() => void list.refetch()}
          stale={list.isPlaceholderData}
          onOpen={({ id }) => setUrl({ id })}
          openId={url.id}
          hasMore={list.hasNextPage}
          loadMore={() => void list.fetchNextPage()}
          loadingMore={list.isFetchingNextPage}
          empty={
            Object.values(filter).every((value) => value === undefined) ? (
              <EmptyState title={`No calls ${range.phrase}`}>
                Choose a longer time range, or make a call with a gateway key.
              </EmptyState>
            ) : (
              <EmptyState title={`No requests match ${range.phrase}`}>
                Remove a filter, or choose a longer time range.
              </EmptyState>
            )
          }
        />
      </Stack>
      <RequestDrawer id={url.id} onClose={() => setUrl({ id: undefined })} />
    </>
  );
}
