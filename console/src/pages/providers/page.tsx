import { Button, Group, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { partOf } from '../../app/lazy-part';
import { api } from '../../api/client';
import { providersQuery } from '../../api/load-all';
import { useMayChange } from '../../app/session';
import { EmptyState } from '../../display/empty-state';
import { LoadingRows } from '../../display/loading';
import { PageHeader } from '../../display/page-header';
import { StatusBadge } from '../../display/status-badge';
import { Compact, RelativeTime } from '../../figures/figure';
import { duration, percent } from '../../figures/numbers';
import { type Column, DataTable } from '../../table/data-table';
import { useTimeRange } from '../../url/time-range';
import { TimeRangePicker } from '../../url/time-range-picker';
import { useUrlState } from '../../url/url-state';
import type { UsagePage } from '../../usage/metrics';
import { useUsage } from '../../usage/use-usage';
import { type Provider, SECRET_STATES, secretSetAt } from './provider';
import { ProviderDrawer } from './provider-drawer';
import { ProviderHealth, useLastHour } from './provider-health';
import { ProviderForm } from './provider-form';
import { useProviderTest } from './provider-test';

const Routes = partOf(
  'routes',
  () => import('./routes'),
  () => <LoadingRows rows={2} />,
);

export default function Providers() {
  const [url, setUrl] = useUrlState();
  const range = useTimeRange('24h');
  const mayChange = useMayChange();
  const providers = useQuery(providersQuery);
  const usage = useUsage({ ...range.query, group_by: 'provider', limit: 500 }).data;
  const audit = useQuery({
    queryKey: ['audit', 'providers'],
    queryFn: ({ signal }) =>
      api.get('/admin/v1/audit', { query: { subject_type: 'provider', limit: 500 }, signal }),
  }).data?.data;
  const test = useProviderTest();
  const rows = providers.data?.data;
  const lastHour = useLastHour(range.zone).data;
  const columns = useMemo(() => columnsOf(usage, lastHour, audit ?? []), [usage, lastHour, audit]);
  const opened = rows?.find(({ name }) => name === url.open);
  const add = mayChange && <Button onClick={() => setUrl({ new: '1' })}>Add provider</Button>;
  return (
    <>
      <PageHeader
        title="Providers and routes"
        description="The services that calls are forwarded to, and how they respond."
      >
        <TimeRangePicker range={range} />
        {rows?.length !== 0 && add}
      </PageHeader>
      <DataTable
        label="Providers"
        columns={columns}
        rows={rows}
        rowId={({ name }) => name}
        error={providers.error}
        retry={() => void providers.refetch()}
        onOpen={({ name }) => setUrl({ open: name })}
        openId={url.open}
        empty={
          <EmptyState title="There is no provider yet" action={add}>
            Calls get 503 until there is one.
          </EmptyState>
        }
      />
      <ProviderDrawer
        shown={opened}
        secretAt={opened && secretSetAt(opened, audit ?? [])}
        test={test}
        onClose={() => setUrl({ open: undefined })}
      />
      <Routes />
      {mayChange && url.new === '1' && (
        <ProviderForm
          isFirst={rows?.length === 0}
          team={url.team}
          onClose={() => setUrl({ new: undefined, team: undefined })}
          onSaved={({ name }) => {
            setUrl({ new: undefined, team: undefined, open: name });
            test.mutate(name);
          }}
        />
      )}
    </>
  );
}

function columnsOf(
  usage: UsagePage | undefined,
  lastHour: UsagePage | undefined,
  audit: Parameters<typeof secretSetAt>[1],
): Column<Provider>[] {
  const sums = new Map((usage?.data ?? []).map((row) => [row.provider, row]));
  const lastHours = new Map((lastHour?.data ?? []).map((row) => [row.provider, row]));
  return [
    {
      id: 'name',
      header: 'Provider',
      sortBy: ({ name }) => name,
      cell: ({ name, default: isDefault, url, team }) => (
        <>
          <Group component="span" gap={8} display="inline-flex">
            <Text span fw={600} size="sm">
              {name}
            </Text>
            {isDefault && <StatusBadge tone="neutral">default</StatusBadge>}
            {team !== null && <StatusBadge tone="neutral">{`team ${team}`}</StatusBadge>}
          </Group>
          <Text c="dimmed" size="xs" component="span" display="block">
            {url}
          </Text>
        </>
      ),
    },
    {
      id: 'status',
      header: 'Last hour',
      cell: ({ enabled, name }) => (
        <ProviderHealth name={name} enabled={enabled} lastHour={lastHours.get(name)} />
      ),
    },
    {
      id: 'secret',
      header: 'Secret',
      cell: (provider) => {
        const { label, tone } = SECRET_STATES[provider.secret_state];
        const at = secretSetAt(provider, audit);
        if (tone === 'bad') return <StatusBadge tone={tone}>{label}</StatusBadge>;
        return at === undefined ? (
          label
        ) : (
          <>
            set <RelativeTime at={at} />
          </>
        );
      },
    },
    {
      id: 'calls',
      header: 'Calls',
      align: 'right',
      sortBy: ({ name }) => sums.get(name)?.calls ?? 0,
      cell: ({ name }) => <Compact value={sums.get(name)?.calls ?? 0} />,
    },
    {
      id: 'errors',
      header: 'Error rate',
      align: 'right',
      sortBy: ({ name }) => (sums.get(name)?.errors ?? 0) / (sums.get(name)?.calls ?? 1),
      cell: ({ name }) => {
        const row = sums.get(name);
        return row === undefined ? '–' : percent(row.errors, row.calls);
      },
    },
    {
      id: 'p95',
      header: 'p95 duration',
      align: 'right',
      sortBy: ({ name }) => sums.get(name)?.p95_ms ?? 0,
      cell: ({ name }) => duration(sums.get(name)?.p95_ms),
    },
  ];
}
