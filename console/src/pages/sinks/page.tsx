import { Button, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { api } from '../../api/client';
import { useMayChange } from '../../app/session';
import { EmptyState } from '../../display/empty-state';
import { PageHeader } from '../../display/page-header';
import { StatusBadge } from '../../display/status-badge';
import { RelativeTime } from '../../figures/figure';
import { count, duration } from '../../figures/numbers';
import { type Column, DataTable } from '../../table/data-table';
import { useUrlState } from '../../url/url-state';
import { KINDS, type Sink, SINK_TONES } from './sink';
import { SinkDrawer } from './sink-drawer';
import { SinkForm } from './sink-form';

const REFRESH_MS = 10_000;

const COLUMNS: Column<Sink>[] = [
  {
    id: 'name',
    header: 'Sink',
    sortBy: ({ name }) => name,
    cell: ({ name, kind }) => (
      <>
        <Text span fw={600} size="sm">
          {name}
        </Text>
        <Text c="dimmed" size="xs" component="span" display="block">
          {KINDS[kind].label}
        </Text>
      </>
    ),
  },
  {
    id: 'state',
    header: 'State',
    cell: ({ state }) => <StatusBadge tone={SINK_TONES[state]}>{state}</StatusBadge>,
  },
  {
    id: 'lag',
    header: 'Behind',
    align: 'right',
    sortBy: ({ lag_seconds }) => lag_seconds,
    cell: ({ lag_seconds }) => duration(lag_seconds * 1_000),
  },
  {
    id: 'rows',
    header: 'Rows sent',
    align: 'right',
    sortBy: ({ rows_sent }) => rows_sent,
    cell: ({ rows_sent }) => count(rows_sent),
  },
  {
    id: 'error',
    header: 'Last error',
    wholeLine: true,
    cell: ({ last_error, last_error_at }) =>
      last_error === null ? (
        'none'
      ) : (
        <>
          {last_error}{' '}
          <Text span c="dimmed" size="xs">
            <RelativeTime at={last_error_at} />
          </Text>
        </>
      ),
  },
];

export default function Sinks() {
  const [url, setUrl] = useUrlState();
  const mayChange = useMayChange();
  const sinks = useQuery({
    queryKey: ['sinks'],
    queryFn: ({ signal }) => api.get('/admin/v1/sinks', { signal }),
    refetchInterval: REFRESH_MS,
  });
  const rows = sinks.data?.data;
  const create = mayChange && <Button onClick={() => setUrl({ new: '1' })}>Add sink</Button>;
  return (
    <>
      <PageHeader title="Sinks" description="Systems beyond Postgres that get every row of the request log.">
        {rows?.length !== 0 && create}
      </PageHeader>
      <DataTable
        label="Sinks"
        columns={COLUMNS}
        rows={rows}
        rowId={({ id }) => id}
        error={sinks.error}
        retry={() => void sinks.refetch()}
        onOpen={({ id }) => setUrl({ open: id })}
        openId={url.open}
        empty={
          <EmptyState title="The request log is in Postgres only" action={create}>
            A sink keeps all rows in ClickHouse, a NATS stream or a receiver of yours, for reports over
            months.
          </EmptyState>
        }
      />
      <SinkDrawer
        shown={rows?.find(({ id }) => id === url.open)}
        onClose={() => setUrl({ open: undefined })}
      />
      {mayChange && url.new === '1' && (
        <SinkForm
          onClose={() => setUrl({ new: undefined })}
          onSaved={({ id }) => setUrl({ new: undefined, open: id })}
        />
      )}
    </>
  );
}
