import { Anchor } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useMemo } from 'react';
import { api } from '../../api/client';
import { useIsMember } from '../../app/session';
import { EmptyState } from '../../display/empty-state';
import { Section } from '../../display/section';
import { StatusBadge } from '../../display/status-badge';
import { count, duration, percent } from '../../figures/numbers';
import { type Column, DataTable } from '../../table/data-table';
import { timeRangeOf } from '../../url/time-range';
import { sharedState, useUrlState } from '../../url/url-state';
import type { UsageRow } from '../../usage/metrics';
import { useUsage } from '../../usage/use-usage';

interface Health {
  name: string;
  disabled: boolean;
  usage: UsageRow | undefined;
}

const COLUMNS: readonly Column<Health>[] = [
  { id: 'name', header: 'Provider', cell: ({ name }) => name },
  { id: 'state', header: 'State', cell: (row) => <State {...row} /> },
  { id: 'calls', header: 'Calls', align: 'right', cell: ({ usage }) => count(usage?.calls ?? 0) },
  {
    id: 'errors',
    header: 'Error rate',
    align: 'right',
    cell: ({ usage }) => (usage === undefined ? '–' : percent(usage.errors, usage.calls)),
  },
  { id: 'p95', header: 'p95', align: 'right', cell: ({ usage }) => duration(usage?.p95_ms) },
];

/** How the providers did in the last hour, whatever the range of the page. */
export default function ProviderHealth({ zone }: { zone: string }) {
  const [url] = useUrlState();
  const isMember = useIsMember();
  const hour = timeRangeOf({ range: '1h' }, '1h', zone, new Date());
  const usage = useUsage({ ...hour.query, group_by: 'provider', limit: 100 });
  const providers = useQuery({
    queryKey: ['providers'],
    queryFn: ({ signal }) => api.get('/admin/v1/providers', { signal }),
    enabled: !isMember,
  });
  const rows = useMemo(() => {
    const called = usage.data?.data;
    if (called === undefined) return undefined;
    // Members do not see the list of providers, only their own calls.
    if (isMember) return called.map((row) => ({ name: row.provider ?? '–', disabled: false, usage: row }));
    return providers.data?.data.map(({ name, enabled }) => ({
      name,
      disabled: !enabled,
      usage: called.find(({ provider }) => provider === name),
    }));
  }, [providers.data, usage.data, isMember]);
  return (
    <Section
      title="Providers in the last hour"
      h="100%"
      actions={
        !isMember && (
          <Anchor component={Link} to="/providers" search={sharedState(url) as never} size="sm">
            All providers
          </Anchor>
        )
      }
    >
      <DataTable
        label="Providers in the last hour"
        columns={COLUMNS}
        rows={rows}
        rowId={({ name }) => name}
        error={providers.error ?? usage.error}
        retry={() => void Promise.all([providers.refetch(), usage.refetch()])}
        empty={
          isMember ? (
            <EmptyState title="No calls in the last hour">
              Calls appear here a few seconds after they end.
            </EmptyState>
          ) : (
            <EmptyState
              title="No provider yet"
              action={
                <Anchor
                  component={Link}
                  to="/providers"
                  search={sharedState(url) as never}
                  underline="always"
                >
                  Add a provider
                </Anchor>
              }
            >
              Calls get 503 until there is one.
            </EmptyState>
          )
        }
      />
    </Section>
  );
}

const UNHEALTHY = 0.2;

function State({ disabled, usage }: Health) {
  if (disabled) return <StatusBadge tone="neutral">Disabled</StatusBadge>;
  if (usage === undefined || usage.calls === 0) return <StatusBadge tone="neutral">No calls</StatusBadge>;
  if (usage.errors / usage.calls >= UNHEALTHY) return <StatusBadge tone="bad">Failing</StatusBadge>;
  return <StatusBadge tone="good">Healthy</StatusBadge>;
}
